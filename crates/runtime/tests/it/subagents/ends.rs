//! Tests that a subagent frees its slot, is counted once and stops, however its call ends.

use std::sync::Arc;

use quintet_kernel::SessionId;
use quintet_kernel::event::{Event, Record, StopCause};
use quintet_kernel::model::{Chunk, FinishReason, ModelResponse, RawToolCall, Usage};
use quintet_kernel::policy::SubagentLimits;
use quintet_kernel::port::{Batch, Journal as _, Leases as _, Sessions as _};
use quintet_kernel::session::TurnStatus;
use quintet_runtime::{Runtime, subagents};
use quintet_testkit::scripted_model::ScriptedCall;

use super::{children, results, start, start_with};
use crate::world::{Client as _, FOREVER, World, settle, within};

/// A session whose subagent has called its model.
async fn delegated(world: &World, runtime: &Runtime) -> (SessionId, ScriptedCall) {
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    (parent, world.asked().await)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_subagent_frees_its_slot() {
    let world = World::new();
    let runtime = start_with(&world, SubagentLimits { at_once: 1, ..SubagentLimits::default() });
    let (parent, _asked) = delegated(&world, &runtime).await;
    runtime.cancel(&parent).await.unwrap();
    settle().await;
    let view = runtime.state(&parent).await;
    assert!(view.subagents.iter().all(|known| known.over && known.completed));
    runtime.say(&parent, "again").await.unwrap();
    world.asked().await.call(&[("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#)]);
    let asked = world.asked().await;
    asked.say("found");
    asked.finish();
    world.asked().await.finish();
    settle().await;
    let results = results(&runtime, &parent).await;
    assert!(results.contains(&"found".to_owned()), "{results:?}");
    assert_eq!(children(&runtime, &parent).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_subagent_that_cannot_start_frees_its_slot() {
    let world = World::new();
    let runtime = start_with(&world, SubagentLimits { at_once: 1, ..SubagentLimits::default() });
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let task = r#"{"task":"a","model":"nobody/x"}"#;
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, task)]);
    world.asked().await.call(&[("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#)]);
    let asked = world.asked().await;
    asked.say("found");
    asked.finish();
    world.asked().await.finish();
    settle().await;
    let results = results(&runtime, &parent).await;
    assert!(results[0].contains("nobody/x") && results[1] == "found", "{results:?}");
    let view = runtime.state(&parent).await;
    assert!(view.subagents.iter().all(|known| known.completed), "{:?}", view.subagents);
}

/// The daemon dies while the turn is being stopped and the subagent does not know yet.
#[tokio::test(start_paused = true)]
async fn a_stopped_session_leaves_no_subagent_running_after_a_crash() {
    let mut world = World::new();
    let runtime = start(&world);
    let (parent, asked) = delegated(&world, &runtime).await;
    settle().await;
    let child = children(&runtime, &parent).await.remove(0);
    within(runtime.close(FOREVER)).await;
    drop((asked, runtime));
    world.reopen();
    stop(&world, &parent).await;
    let runtime = start(&world);
    within(runtime.recover()).await.unwrap();
    settle().await;
    settle().await;
    assert_eq!(runtime.state(&child).await.turns[0].status, TurnStatus::Cancelled);
    let view = runtime.state(&parent).await;
    assert!(!view.busy() && view.subagents.iter().all(|known| known.completed));
    let names = world.names_of(&parent).await;
    assert_eq!(names.iter().filter(|name| **name == "cancelled").count(), 1, "{names:?}");
}

/// Cancels a subagent whose own subagent does not stop in time and has used tokens by then.
#[tokio::test(start_paused = true)]
async fn the_cost_of_nested_subagents_is_counted_at_the_root() {
    let world = World::new();
    let runtime = start(&world);
    let (root, asked) = delegated(&world, &runtime).await;
    asked.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#)]);
    let asked = world.asked().await;
    let call = RawToolCall { id: "l1".into(), tool: "look".into(), arguments: "{}".into() };
    let usage = Usage { input: 7_000, output: 0, ..Usage::default() };
    asked.send(vec![Chunk::Finished(ModelResponse::new(
        FinishReason::ToolCalls,
        vec![call],
        usage,
    ))]);
    let _deaf = within(world.look.started()).await;
    let child = children(&runtime, &root).await.remove(0);
    runtime.cancel(&child).await.unwrap();
    let _goes_on = world.asked().await;
    let usage = runtime.state(&root).await.usage;
    assert!(usage.total() > 7_000, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_subagent_is_dropped() {
    let mut world = World::new();
    let runtime = start(&world);
    let (parent, asked) = delegated(&world, &runtime).await;
    settle().await;
    let child = children(&runtime, &parent).await.remove(0);
    within(runtime.close(FOREVER)).await;
    drop((asked, runtime));
    world.reopen();
    stop(&world, &parent).await;
    world.journal.damage(&child);
    let runtime = start(&world);
    within(runtime.recover()).await.unwrap();
    settle().await;
    settle().await;
    assert!(runtime.state(&parent).await.subagents.iter().all(|known| known.completed));
    assert!(!within(runtime.summary(&parent)).await.unwrap().open);
}

/// Appends a stop request for the open turn, as if the daemon had died right after it.
async fn stop(world: &World, session: &SessionId) {
    let records = world.journal_of(session).await;
    let mut state = quintet_kernel::State::new(session.clone(), Arc::clone(&world.deps().rules));
    state.replay(&records);
    let turn = state.open.as_ref().unwrap().id.clone();
    let cause = StopCause::Cancelled { reason: None };
    let event = Event::StopRequested { turn, cause };
    let record = Record { seq: state.head + 1, at: state.updated, event };
    let lease = world.store.acquire(session).await.unwrap();
    let records = vec![Arc::new(record)];
    let batch = Batch { records, summary: state.summary() };
    world.store.append(&lease, state.head, batch).await.unwrap();
}
