//! Tests that evaluated tokens are not evaluated again.

use quintet_kernel::model::ModelRef;
use quintet_kernel::port::ModelProfiles as _;

use crate::{ask, assistant, local, prompt, user, with};

#[tokio::test]
async fn the_next_step_evaluates_only_new_tokens() {
    let local = local();
    let mut talk = vec![user("Name three colours.")];
    let first = ask(&local, prompt(talk.clone(), 24)).await.unwrap();
    assert_eq!(first.answer.usage.cached, 0);
    talk.extend([assistant(&first.text), user("Name one more.")]);
    let second = ask(&local, prompt(talk.clone(), 24)).await.unwrap();
    let (before, now) = (first.answer.usage, second.answer.usage);
    // The last token of an answer at its limit was generated and not evaluated.
    let known = before.input + before.output - u64::from(before.output == 24);
    assert_eq!(now.cached, known, "{before:?} {now:?}");
    talk.extend([assistant(&second.text), user("And one more.")]);
    let third = ask(&local, prompt(talk, 24)).await.unwrap().answer.usage;
    assert!(third.cached >= now.input + now.output - 1, "{now:?} {third:?}");
    assert!(third.input - third.cached < 20, "{third:?}");
}

#[test]
fn tokens_are_counted_by_the_model_s_own_vocabulary() {
    let local = local();
    let count = |name: &str| {
        local.count(&ModelRef { provider: "local".into(), model: name.into() }, "hello world")
    };
    assert_eq!((count("smollm2-135m").tokens, count("smollm2-135m").exact), (2, true));
    assert_eq!((count("nobody").tokens, count("nobody").exact), (3, false));
    assert!(local.loaded().is_empty(), "counting does not load the weights");
}

#[tokio::test]
async fn sessions_share_a_prefix_and_do_not_disturb_each_other() {
    let local = local();
    let long = |what: &str| format!("{what}: {}", "the quick brown fox jumps. ".repeat(8));
    let one = prompt(vec![user(&long("One"))], 4);
    let other = prompt(vec![user(&long("Other"))], 4);
    let first = ask(&local, one.clone()).await.unwrap().answer.usage;
    let second = ask(&local, other.clone()).await.unwrap().answer.usage;
    assert!(second.cached > 8 && second.cached < 30, "the system prompt is cached: {second:?}");
    for (prompt, usage) in [(one, first), (other, second)] {
        let again = ask(&local, prompt).await.unwrap().answer.usage;
        assert_eq!(again.cached, usage.input - 1);
    }
}

#[tokio::test]
async fn cached_tokens_do_not_change_the_answer() {
    let local = local();
    let question = prompt(vec![user("Name three animals that live in the sea.")], 32);
    let fresh = ask(&local, question.clone()).await.unwrap();
    let known = ask(&local, question).await.unwrap();
    assert_eq!(known.text, fresh.text);
}

#[tokio::test]
async fn old_sessions_are_evicted() {
    let local = with(|settings| settings.window = 256);
    for n in 0..4 {
        let text = format!("{n} {}", "and so on ".repeat(30));
        let received = ask(&local, prompt(vec![user(&text)], 8)).await.unwrap();
        assert!(received.answer.usage.output > 0);
    }
}
