//! Tests of token and time limits of subagents.

use std::time::Duration;

use quintet_kernel::SessionId;
use quintet_kernel::event::Budget;
use quintet_kernel::model::{Chunk, FinishReason, ModelResponse, RawToolCall, Usage};
use quintet_kernel::policy::SubagentLimits;
use quintet_kernel::session::TurnStatus;
use quintet_runtime::{Runtime, subagents};
use quintet_testkit::scripted_model::ScriptedCall;

use super::{children, results, start_with};
use crate::world::{Client as _, World, settle};

/// Starts a subagent; returns its first model call.
async fn delegated(world: &World, runtime: &Runtime, task: &str) -> (SessionId, ScriptedCall) {
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, task)]);
    (parent, world.asked().await)
}

/// Completes a response that used this many tokens and calls `look`.
fn call_look(asked: &ScriptedCall, input: u64, output: u64) {
    let call = RawToolCall { id: "l1".into(), tool: "look".into(), arguments: "{}".into() };
    let usage = Usage { input, output, ..Usage::default() };
    asked.send(vec![Chunk::Finished(ModelResponse::new(
        FinishReason::ToolCalls,
        vec![call],
        usage,
    ))]);
}

async fn status(runtime: &Runtime, parent: &SessionId) -> TurnStatus {
    let child = children(runtime, parent).await.remove(0);
    runtime.state(&child).await.turns[0].status
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_a_stopped_subagent_count_for_its_parent() {
    let world = World::new();
    let budget = Budget { tokens: Some(100), ..Budget::default() };
    let runtime = start_with(&world, SubagentLimits { budget, ..SubagentLimits::default() });
    let (parent, asked) = delegated(&world, &runtime, r#"{"task":"a","max_tokens":1000}"#).await;
    asked.say("looking");
    call_look(&asked, 90, 20);
    world.look.started().await.finish(quintet_kernel::tool::Outcome::success("seen"));
    settle().await;
    assert_eq!(status(&runtime, &parent).await, TurnStatus::Failed);
    world.asked().await.finish();
    settle().await;
    let results = results(&runtime, &parent).await;
    assert!(results[0].contains("max turn tokens reached"), "{results:?}");
    assert!(results[0].contains("the last it said: looking"), "{results:?}");
    assert!(runtime.state(&parent).await.usage.total() >= 110);
}

#[tokio::test(start_paused = true)]
async fn a_model_may_limit_a_subagent_further() {
    let world = World::new();
    let budget = Budget { tokens: Some(1000), ..Budget::default() };
    let runtime = start_with(&world, SubagentLimits { budget, ..SubagentLimits::default() });
    let (parent, asked) = delegated(&world, &runtime, r#"{"task":"a","max_tokens":100}"#).await;
    call_look(&asked, 90, 20);
    world.look.started().await.finish(quintet_kernel::tool::Outcome::success("seen"));
    settle().await;
    assert_eq!(status(&runtime, &parent).await, TurnStatus::Failed);
}

#[tokio::test(start_paused = true)]
async fn a_subagent_that_takes_too_long_is_stopped() {
    for (limit, task, time) in [
        (60, r#"{"task":"a","max_seconds":10}"#, 10),
        (10, r#"{"task":"a","max_seconds":60}"#, 10),
        (10, r#"{"task":"a"}"#, 10),
    ] {
        let world = World::new();
        let budget = Budget { time_ms: Some(limit * 1000), ..Budget::default() };
        let runtime = start_with(&world, SubagentLimits { budget, ..SubagentLimits::default() });
        let (parent, asked) = delegated(&world, &runtime, task).await;
        asked.say("hm");
        tokio::time::sleep(Duration::from_secs(time - 1)).await;
        settle().await;
        assert_eq!(status(&runtime, &parent).await, TurnStatus::Running, "{task}");
        tokio::time::sleep(Duration::from_secs(2)).await;
        settle().await;
        assert_eq!(status(&runtime, &parent).await, TurnStatus::Failed, "{task}");
        world.asked().await.finish();
        settle().await;
        let results = results(&runtime, &parent).await;
        assert!(results[0].contains("the turn took too long"), "{results:?}");
        assert!(runtime.state(&parent).await.open.is_none(), "its parent has time left");
    }
}
