//! Tests of forks: a fork has its parent's history and then its own.

use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::session::TurnStatus;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Cursor, SessionId};
use quintet_runtime::Runtime;

use crate::world::{Client, FOREVER, World, settle, within};

async fn answered(world: &World, runtime: &Runtime, session: &SessionId, text: &str) {
    runtime.say(session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.say(text);
    asked.finish();
    runtime.watch(session, Cursor::START).await.until(&format!("{text}<answered><done>")).await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_continues_from_its_parents_history() {
    let world = World::new();
    let runtime = world.start();
    let parent = runtime.begin().await;
    answered(&world, &runtime, &parent, "one").await;
    let fork = within(runtime.fork(&parent, None)).await.unwrap().session;
    answered(&world, &runtime, &fork, "two").await;
    answered(&world, &runtime, &parent, "three").await;
    let texts = async |session: &SessionId| {
        let view = runtime.view(session).await.unwrap();
        view.messages.iter().map(|message| message.text()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&fork).await, ["go", "one", "go", "two"]);
    assert_eq!(texts(&parent).await, ["go", "one", "go", "three"]);
    let forks = runtime.forks(&parent).await.unwrap();
    assert_eq!(forks.into_iter().map(|summary| summary.id).collect::<Vec<_>>(), [fork]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_open_in_the_parent_ends_in_the_fork() {
    let world = World::new();
    let runtime = world.start();
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let fork = within(runtime.fork(&parent, None)).await.unwrap().session;
    let view = within(runtime.view(&fork)).await.unwrap();
    assert!(!view.busy());
    assert_eq!(view.turns[0].status, TurnStatus::Failed);
    assert!(runtime.view(&parent).await.unwrap().busy());
    job.finish(Outcome::success("done"));
    let asked = world.asked().await;
    asked.say("there");
    asked.finish();
    runtime.watch(&parent, Cursor::START).await.until("there<answered><done>").await;
    answered(&world, &runtime, &fork, "here").await;
}

#[tokio::test(start_paused = true)]
async fn a_fork_outlives_its_parent_and_a_restart() {
    let mut world = World::new();
    let runtime = world.start();
    let parent = runtime.begin().await;
    answered(&world, &runtime, &parent, "one").await;
    let fork = runtime.fork(&parent, None).await.unwrap().session;
    within(runtime.remove(&parent)).await.unwrap();
    within(runtime.close(FOREVER)).await;
    world.reopen();
    let runtime = world.start();
    assert_eq!(runtime.view(&fork).await.unwrap().messages[1].text(), "one");
    answered(&world, &runtime, &fork, "two").await;
}

#[tokio::test(start_paused = true)]
async fn a_missing_session_or_event_cannot_be_forked() {
    let world = World::new();
    let runtime = world.start();
    let parent = runtime.begin().await;
    let ahead = runtime.fork(&parent, Some(2)).await.err();
    assert!(matches!(ahead, Some(Error::Ahead(2, 1))), "{ahead:?}");
    let missing = SessionId::parse("nobody").unwrap();
    let missing = runtime.fork(&missing, None).await.err();
    assert!(matches!(missing, Some(Error::NotFound(_))), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn the_summary_of_a_fork_counts_its_own_history() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    answered(&world, &runtime, &session, "one").await;
    let middle = runtime.state(&session).await.head;
    answered(&world, &runtime, &session, "two").await;
    let whole = within(runtime.summary(&session)).await.unwrap();
    assert_eq!(whole.messages, 4);
    let fork = within(runtime.fork(&session, Some(middle))).await.unwrap().session;
    settle().await;
    let summary = within(runtime.summary(&fork)).await.unwrap();
    assert_eq!((summary.messages, summary.open), (2, false));
    assert_eq!(summary, runtime.state(&fork).await.summary());
}
