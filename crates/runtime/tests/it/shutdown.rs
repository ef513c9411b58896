//! Tests of shutdown: nothing is accepted, lost or left running.

use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::tool::{Ending, Outcome};
use quintet_kernel::{Cursor, SessionId};
use quintet_runtime::Runtime;

use crate::gated_store::Gate;
use crate::world::{Client, FOREVER, World, label, origin, settle, waits, within};

fn closing<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Closing))
}

async fn with_message(world: &World) -> (Runtime, SessionId) {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    (runtime, session)
}

#[tokio::test(start_paused = true)]
async fn no_command_is_accepted() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    within(runtime.close(FOREVER)).await;
    assert_eq!(runtime.awake(), 0);
    assert!(closing(runtime.label(&session, "a").await));
    assert!(closing(within(runtime.create(origin())).await));
    assert!(closing(within(runtime.view(&session)).await));
    settle().await;
    assert_eq!(runtime.awake(), 0);
    assert_eq!(world.names_of(&session).await, ["created"]);
    // The history can still be read.
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.end().await;
    assert_eq!(watcher.story(), "<created>");
}

#[tokio::test(start_paused = true)]
async fn commands_during_shutdown_are_refused() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    within(job.stopped()).await;
    assert!(closing(runtime.label(&session, "a").await));
    assert!(closing(within(runtime.create(origin())).await));
    assert!(waits(&mut closed).await);
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(closed).await;
}

#[tokio::test(start_paused = true)]
async fn streamed_text_is_kept_and_the_turn_continues_at_the_next_start() {
    let mut world = World::new();
    let (runtime, session) = with_message(&world).await;
    let asked = world.asked().await;
    asked.say("part");
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("part").await;
    assert!(!world.names_of(&session).await.contains(&"text"));
    within(runtime.close(FOREVER)).await;
    assert!(asked.dropped());
    assert_eq!(world.names_of(&session).await, ["created", "said", "turn", "step", "text"]);
    watcher.end().await;
    assert_eq!(watcher.story(), "<created><said><turn><step>part");

    world.reopen();
    let runtime = world.start();
    assert_eq!(runtime.recover().await.unwrap(), 1);
    let asked = world.asked().await;
    asked.say("whole");
    asked.finish();
    let mut watcher = runtime.watch(&session, watcher.position()).await;
    watcher.turn_over().await;
    assert_eq!(watcher.story(), "<interrupted><resumed><step>whole<answered><done>");
}

#[tokio::test(start_paused = true)]
async fn a_running_tool_is_stopped_and_the_next_start_tells_the_model() {
    let mut world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    within(job.stopped()).await;
    settle().await;
    assert!(waits(&mut closed).await);
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(closed).await;
    assert_eq!(world.names_of(&session).await.last(), Some(&"call"));

    world.reopen();
    let runtime = world.start();
    assert_eq!(runtime.recover().await.unwrap(), 1);
    let asked = world.asked().await;
    assert_eq!(crate::crash::results(&asked).len(), 1);
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!(world.shell.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_result_of_a_tool_that_ends_during_shutdown_is_kept() {
    let mut world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    watcher.until("<call>").await;
    within(job.stopped()).await;
    job.finish(Outcome::success("fine"));
    within(closed).await;
    watcher.end().await;
    assert!(watcher.story().ends_with("<call><result><step>"), "{}", watcher.story());

    world.reopen();
    let runtime = world.start();
    runtime.recover().await.unwrap();
    let asked = world.asked().await;
    assert_eq!(crate::crash::results(&asked), ["fine"]);
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!(world.shell.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_shutdown_is_answered() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let cancel = quintet_kernel::Command::Cancel { reason: None };
    let mut cancelled = runtime.submit(&session, cancel);
    assert!(waits(&mut cancelled).await);
    within(job.stopped()).await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(cancelled).await.unwrap();
    within(closed).await;
    assert_eq!(world.names_of(&session).await.last(), Some(&"cancelled"));
}

#[tokio::test(start_paused = true)]
async fn followers_end_after_the_last_item() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<created>").await;
    world.journal.set(Gate::Shut);
    let mut labelled = runtime.submit(&session, label("a"));
    assert!(waits(&mut labelled).await);
    settle().await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    settle().await;
    watcher.peek().await;
    world.journal.set(Gate::Open);
    within(labelled).await.unwrap();
    within(closed).await;
    watcher.end().await;
    assert_eq!(watcher.story(), "<created><labelled>");
}
