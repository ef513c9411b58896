//! Tests that cancelling a turn stops everything that runs for it.

use quintet_kernel::port::Sessions;
use quintet_kernel::tool::{Ending, Outcome, ToolKind};
use quintet_kernel::{Command, Cursor, SessionId};
use quintet_runtime::Runtime;
use tokio::time::Instant;

use crate::gated_store::Gate;
use crate::world::{Client, World, name, settle, waits, within};

async fn with_message(world: &World) -> (Runtime, SessionId) {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    (runtime, session)
}

fn cancel() -> Command {
    Command::Cancel { reason: Some("enough".into()) }
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_model_call_drops_its_stream() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    let asked = world.asked().await;
    asked.say("I was about to");
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("about to").await;
    let receipt = within(runtime.submit(&session, cancel())).await.unwrap();
    let actual: Vec<_> = receipt.records.iter().map(|record| name(&record.event)).collect();
    assert_eq!(actual, ["text", "stop", "interrupted", "cancelled"]);
    assert!(asked.dropped());
    watcher.turn_over().await;
    let expected = "<created><said><turn><step>I was about to<stop><interrupted><cancelled>";
    assert_eq!(watcher.story(), expected);
    // Cancelling when nothing runs is no error.
    assert!(runtime.cancel(&session).await.unwrap().records.is_empty());
    runtime.say(&session, "again").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_approval_can_be_cancelled() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<ask>").await;
    runtime.cancel(&session).await.unwrap();
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("<ask><stop><result><cancelled>"), "{}", watcher.story());
    assert!(runtime.allow(&session, "c1").await.is_err());
    assert_eq!(world.shell.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_running_tool_returns_once_it_has_ended() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    let mut cancelled = runtime.submit(&session, cancel());
    assert!(waits(&mut cancelled).await);
    within(job.stopped()).await;
    watcher.until("<stop>").await;
    let mut twice = runtime.submit(&session, cancel());
    assert!(waits(&mut twice).await);
    settle().await;
    assert!(waits(&mut cancelled).await && waits(&mut twice).await);
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(cancelled).await.unwrap();
    within(twice).await.unwrap();
    // Everything has ended when the reply arrives.
    assert!(runtime.state(&session).await.open.is_none());
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("<call><stop><result><cancelled>"), "{}", watcher.story());
    assert_eq!(world.model.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_abandoned() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let began = Instant::now();
    runtime.cancel(&session).await.unwrap();
    let took = began.elapsed();
    assert!(took >= world.timing.stop_within && took < world.timing.stop_within * 2, "{took:?}");
    assert!(job.given_up());
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("<stop><result><cancelled>"));
}

#[tokio::test(start_paused = true)]
async fn concurrent_reads_all_stop() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    world.asked().await.call(&[("c1", "look", r#"{"n":1}"#), ("c2", "look", r#"{"n":2}"#)]);
    let (one, two) = (within(world.look.started()).await, within(world.look.started()).await);
    let mut cancelled = runtime.submit(&session, cancel());
    assert!(waits(&mut cancelled).await);
    within(one.stopped()).await;
    within(two.stopped()).await;
    one.finish(Outcome::success("too late"));
    settle().await;
    assert!(waits(&mut cancelled).await);
    two.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(cancelled).await.unwrap();
    assert_eq!(runtime.state(&session).await.status, quintet_kernel::Status::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_about_to_start_never_does() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    let asked = world.asked().await;
    world.journal.set(Gate::Shut);
    asked.call(&[("c1", "shell", "{}")]);
    within(world.journal.appended(3)).await;
    let mut cancelled = runtime.submit(&session, cancel());
    assert!(waits(&mut cancelled).await);
    settle().await;
    world.journal.set(Gate::Open);
    let began = Instant::now();
    within(cancelled).await.unwrap();
    assert!(began.elapsed() < world.timing.stop_within);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("<call><stop><result><cancelled>"), "{}", watcher.story());
    assert_eq!(world.shell.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fast_model_does_not_delay_a_cancel() {
    let world = World::new();
    let (runtime, session) = with_message(&world).await;
    let asked = world.asked().await;
    asked.write_without_pause("bla ");
    runtime.watch(&session, Cursor::START).await.until("bla ").await;
    runtime.cancel(&session).await.unwrap();
    assert!(asked.dropped());
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("bla <stop><interrupted><cancelled>"));
}
