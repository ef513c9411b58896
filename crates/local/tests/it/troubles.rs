//! Tests of requests that fail.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{FailureKind, FinishReason, PromptMessage, PromptPart};
use quintet_kernel::port::Models as _;
use quintet_kernel::{BlobId, message::MediaKind};

use crate::{ask, local, prompt, user, with};

#[tokio::test]
async fn a_prompt_that_is_too_long_is_refused() {
    let local = with(|settings| settings.window = 256);
    let failure = ask(&local, prompt(vec![user(&"word ".repeat(500))], 8)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ContextOverflow);
    assert!(failure.message.contains("(256)"), "{}", failure.message);
    let mut story = prompt(vec![user("Tell me a long story about a ship.")], 10_000);
    story.system = "You tell long stories. ".repeat(35);
    let received = ask(&local, story).await.unwrap();
    assert_eq!(
        received.answer.finish,
        FinishReason::Length,
        "an answer ends where the window does"
    );
    assert_eq!(received.answer.usage.total(), 256);
}

#[tokio::test]
async fn missing_weights_are_named() {
    let local = with(|settings| settings.models_dir = "/nowhere".into());
    let failure = ask(&local, prompt(vec![user("hello")], 8)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::UnknownModel);
    assert!(failure.message.contains("quintet models pull smollm2-135m"), "{}", failure.message);
    assert!(local.list().await.iter().all(|listed| !listed.usable));
}

#[tokio::test]
async fn an_invalid_model_file_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("smollm2-135m.gguf"), b"GGUF, but not really").unwrap();
    let local = with(|settings| settings.models_dir = dir.path().into());
    let failure = ask(&local, prompt(vec![user("hello")], 8)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Unavailable);
    assert!(failure.message.contains("cannot be loaded"), "{}", failure.message);
}

#[tokio::test]
async fn unknown_models_and_pictures_are_refused() {
    let local = local();
    let mut unknown = prompt(vec![user("hello")], 8);
    unknown.model.model = "gpt-9".into();
    assert_eq!(ask(&local, unknown).await.unwrap_err().kind, FailureKind::UnknownModel);
    let picture = PromptPart::Media {
        kind: MediaKind::Image,
        name: "a.png".into(),
        mime: "image/png".into(),
        blob: BlobId::parse("abc").unwrap(),
        content: Arc::from([]),
        detail: None,
    };
    let picture = prompt(vec![PromptMessage::User(vec![picture])], 8);
    assert_eq!(ask(&local, picture).await.unwrap_err().kind, FailureKind::UnsupportedInput);
}

#[tokio::test]
async fn an_idle_model_is_unloaded_and_loaded_again() {
    let local = with(|settings| settings.idle = Duration::ZERO);
    for _ in 0..2 {
        let received = ask(&local, prompt(vec![user("Say yes.")], 4)).await.unwrap();
        assert_eq!(received.notices.len(), 1);
        while !local.loaded().is_empty() {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn closing_cancels_running_jobs() {
    let local = local();
    let mut stream = local.stream(prompt(vec![user("Tell me a long story.")], 100_000));
    stream.next().await.unwrap();
    let closing = local.clone();
    tokio::task::spawn_blocking(move || closing.close()).await.unwrap();
    assert!(crate::collect(stream).await.is_err());
    let late = ask(&local, prompt(vec![user("hello")], 8)).await.unwrap_err();
    assert_eq!(late.kind, FailureKind::Unavailable);
}

#[tokio::test]
async fn a_message_of_a_megabyte_is_refused_and_the_next_one_answered() {
    let local = local();
    let long = "all work and no play\0 ".repeat(50_000);
    let failure = ask(&local, prompt(vec![user(&long)], 8)).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::ContextOverflow);
    assert!(!ask(&local, prompt(vec![user("Say yes.")], 8)).await.unwrap().text.is_empty());
}

#[tokio::test]
async fn a_job_that_is_cancelled_during_evaluation_has_no_effect() {
    let local = local();
    let long = |word: &str| prompt(vec![user(&format!("{word} ").repeat(900))], 4);
    let mut stream = local.stream(long("one"));
    // The model is loaded first; then the prompt is evaluated.
    stream.next().await.unwrap();
    drop(stream);
    let other = ask(&local, long("two")).await.unwrap();
    assert!(other.answer.usage.cached < 100, "{:?}", other.answer.usage);
    let fresh = ask(&crate::local(), long("one")).await.unwrap();
    assert_eq!(ask(&local, long("one")).await.unwrap().text, fresh.text);
}

#[tokio::test]
async fn deleted_weights_are_used_until_they_are_unloaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = "smollm2-135m.gguf";
    std::fs::copy(crate::models_dir().join(file), dir.path().join(file)).unwrap();
    let local = with(|settings| {
        settings.models_dir = dir.path().into();
        settings.idle = Duration::ZERO;
    });
    let question = || prompt(vec![user("Say yes.")], 4);
    let mut first = local.stream(question());
    first.next().await.unwrap();
    let story = local.stream(question());
    std::fs::remove_file(dir.path().join(file)).unwrap();
    // Whether or not the model was loaded when the file was deleted: an answer, or an error with a
    // remedy.
    for stream in [first, story] {
        match crate::collect(stream).await {
            Ok(received) => assert!(!received.text.is_empty()),
            Err(failure) => assert!(!failure.message.is_empty()),
        }
    }
    let unloaded = async {
        while !local.loaded().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), unloaded).await.expect("the model is unloaded");
    let failure = ask(&local, question()).await.unwrap_err();
    assert!(failure.message.contains("quintet models pull smollm2-135m"), "{}", failure.message);
}
