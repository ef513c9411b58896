//! Calling a turn off reaches everything that runs for it.

use quintet_kernel::port::Sessions;
use quintet_kernel::tool::{Ending, Outcome, ToolKind};
use quintet_kernel::{Command, Cursor, SessionId};
use quintet_runtime::Runtime;
use tokio::time::Instant;

use crate::gated_store::Gate;
use crate::world::{Client, World, name, settle, waits, within};

async fn said(world: &World) -> (Runtime, SessionId) {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    (runtime, session)
}

fn cancel() -> Command {
    Command::Cancel { reason: Some("enough".into()) }
}

#[tokio::test(start_paused = true)]
async fn while_thinking_the_stream_is_dropped() {
    let world = World::new();
    let (runtime, session) = said(&world).await;
    let asked = world.asked().await;
    asked.say("I was about to");
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("about to").await;
    let receipt = within(runtime.submit(&session, cancel())).await.unwrap();
    let told: Vec<_> = receipt.records.iter().map(|record| name(&record.event)).collect();
    assert_eq!(told, ["text", "stop", "interrupted", "cancelled"]);
    assert!(asked.dropped());
    watcher.turn_over().await;
    let told = "<created><said><turn><step>I was about to<stop><interrupted><cancelled>";
    assert_eq!(watcher.story(), told);
    // Nothing is left to cancel, and that is no mistake.
    assert!(runtime.cancel(&session).await.unwrap().records.is_empty());
    runtime.say(&session, "again").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn while_waiting_for_approval() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let (runtime, session) = said(&world).await;
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
async fn while_a_tool_runs_it_is_answered_when_the_tool_has_ended() {
    let world = World::new();
    let (runtime, session) = said(&world).await;
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
    // Everything is over when the answer comes.
    assert!(runtime.state(&session).await.open.is_none());
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("<call><stop><result><cancelled>"), "{}", watcher.story());
    assert_eq!(world.model.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_does_not_stop_is_given_up() {
    let world = World::new();
    let (runtime, session) = said(&world).await;
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
async fn reads_side_by_side_all_stop() {
    let world = World::new();
    let (runtime, session) = said(&world).await;
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
    let (runtime, session) = said(&world).await;
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
async fn a_model_that_writes_without_pause_does_not_keep_it_waiting() {
    let world = World::new();
    let (runtime, session) = said(&world).await;
    let asked = world.asked().await;
    asked.write_without_pause("bla ");
    runtime.watch(&session, Cursor::START).await.until("bla ").await;
    runtime.cancel(&session).await.unwrap();
    assert!(asked.dropped());
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert!(watcher.story().ends_with("bla <stop><interrupted><cancelled>"));
}
