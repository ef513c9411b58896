//! Tests of dry runs.

use quintet_kernel::port::{Error, SessionInspection as _, Sessions as _};
use quintet_kernel::{Command, Cursor, prompt};

use crate::world::{Client as _, World, origin, say, within};

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_exactly_the_prompt() {
    let mut world = World::new();
    world.context_tokens = 1000;
    world.folder.write("a", "old");
    let runtime = world.start();
    let commands =
        || vec![Command::SetSystemPrompt { system_prompt: Some("be brief".into()) }, say("go")];
    let session = runtime.begin().await;
    let tried = within(runtime.dry_run(Some(&session), commands())).await.unwrap();
    let assembled = prompt::assemble(&tried);
    assert_eq!((world.model.count(), runtime.state(&session).await.turns.len()), (0, 0));
    let mut first = vec![Command::Create(origin())];
    first.extend(commands());
    let fresh = within(runtime.dry_run(None, first)).await.unwrap();
    for command in commands() {
        within(runtime.submit(&session, command)).await.unwrap();
    }
    let asked = world.asked().await;
    for assembled in [assembled, prompt::assemble(&fresh)] {
        assert_eq!(
            (&assembled.system, &assembled.messages),
            (&asked.prompt.system, &asked.prompt.messages)
        );
        assert_eq!(
            (&assembled.tools, &assembled.model),
            (&asked.prompt.tools, &asked.prompt.model)
        );
    }
    assert!(asked.prompt.system.contains("be brief"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_refused_like_the_command() {
    let world = World::new();
    let runtime = world.start();
    let refused = within(runtime.dry_run(None, vec![say("go")])).await;
    assert!(matches!(refused, Err(Error::Refused(_))));
}

#[tokio::test(start_paused = true)]
async fn a_summary_can_be_previewed_without_storing_it() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "I like tabs").await.unwrap();
    world.asked().await.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    let before = runtime.state(&session).await;
    for words in ["They met.", "They talked."] {
        let model = async {
            let asked = world.asked().await;
            asked.say(words);
            asked.finish();
        };
        let (tried, ()) =
            within(async { tokio::join!(runtime.preview_summary(&session), model) }).await;
        let tried = tried.unwrap().unwrap();
        assert_eq!(tried.compaction.summary.as_ref().unwrap().text, words);
        let now = runtime.state(&session).await;
        assert_eq!((before.head, &before.compaction), (now.head, &now.compaction));
    }
    let model = async { world.asked().await.finish() };
    let (tried, ()) =
        within(async { tokio::join!(runtime.preview_summary(&session), model) }).await;
    assert_eq!(tried.unwrap().unwrap_err(), "the model wrote nothing");
}
