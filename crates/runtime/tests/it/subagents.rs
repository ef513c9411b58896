//! Tests of subagents.

mod budgets;
mod ends;
mod held;

use std::sync::Arc;

use quintet_kernel::command::{Approve, Command};
use quintet_kernel::event::{ApprovalDecision, Budget, DecidedBy, RememberScope};
use quintet_kernel::policy::SubagentLimits;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::session::TurnStatus;
use quintet_kernel::tool::{Outcome, ToolKind};
use quintet_kernel::{ApprovalId, Cursor, SessionId};
use quintet_runtime::{Runtime, RuntimeDeps, subagents};

use crate::world::{Client, FOREVER, World, settle, within};

pub(crate) fn start(world: &World) -> Runtime {
    start_with(world, SubagentLimits::default())
}

pub(crate) fn start_with(world: &World, limits: SubagentLimits) -> Runtime {
    let deps = world.deps();
    let mut rules = (*deps.rules).clone();
    rules.tools.push(Arc::new(subagents::spec()));
    rules.subagents = limits;
    Runtime::new(RuntimeDeps { rules: Arc::new(rules), ..deps })
}

pub(crate) async fn children(runtime: &Runtime, parent: &SessionId) -> Vec<SessionId> {
    let view = within(runtime.view(parent)).await.unwrap();
    view.subagents.iter().map(|known| known.session.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn subagents_run_concurrently_and_their_results_are_read() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let calls = [
        ("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#),
        ("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#),
    ];
    world.asked().await.call(&calls);
    let (one, two) = (world.asked().await, world.asked().await);
    two.say("second");
    two.finish();
    one.say("first");
    one.finish();
    let asked = world.asked().await;
    asked.say("read");
    asked.finish();
    runtime.watch(&parent, Cursor::START).await.until("read<answered><done>").await;
    let view = runtime.state(&parent).await;
    assert!(view.subagents.iter().all(|known| known.over));
    let mut results: Vec<String> =
        view.messages.iter().filter(|m| m.call.is_some()).map(|m| m.text()).collect();
    results.sort();
    assert_eq!(results, ["first", "second"]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_reaches_subagents() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    let _asked = world.asked().await;
    runtime.cancel(&parent).await.unwrap();
    let child = children(&runtime, &parent).await.remove(0);
    let view = runtime.state(&child).await;
    assert_eq!(view.turns[0].status, TurnStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn subagent_and_parent_continue_after_a_restart() {
    let mut world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    let asked = world.asked().await;
    settle().await;
    within(runtime.close(FOREVER)).await;
    drop((asked, runtime));
    world.reopen();
    let runtime = start(&world);
    assert_eq!(within(runtime.recover()).await.unwrap(), 2);
    let asked = world.asked().await;
    asked.say("found");
    asked.finish();
    let asked = world.asked().await;
    asked.say("read");
    asked.finish();
    runtime.watch(&parent, Cursor::START).await.until("read<answered><done>").await;
    assert_eq!(children(&runtime, &parent).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subagent_gets_at_most_the_tools_of_its_parent() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let narrowed = r#"{"task":"a","tools":["look"]}"#;
    let beyond = r#"{"task":"b","tools":["look","fly"]}"#;
    world.asked().await.call(&[
        ("c1", subagents::SPAWN_TOOL_NAME, narrowed),
        ("c2", subagents::SPAWN_TOOL_NAME, beyond),
    ]);
    let asked = world.asked().await;
    let child = children(&runtime, &parent).await.remove(0);
    assert_eq!(runtime.state(&child).await.toolset.daemon, Some(vec!["look".to_owned()]));
    asked.finish();
    let asked = world.asked().await;
    asked.finish();
    settle().await;
    let view = runtime.state(&parent).await;
    assert!(view.messages.iter().any(|message| message.text() == "there is no tool fly to give"));
    assert_eq!(view.subagents.len(), 1);
}

pub(crate) fn approve(call: &str, answer: ApprovalDecision) -> Command {
    let (by, remember) = (DecidedBy::Client, RememberScope::Once);
    let question = ApprovalId::parse(call).unwrap();
    let (turn, reason, content) = (None, None, None);
    Command::Approve(Approve { question, turn, answer, reason, by, remember, content })
}

/// The results of its calls that the model of a session reads.
pub(crate) async fn results(runtime: &Runtime, session: &SessionId) -> Vec<String> {
    let view = runtime.state(session).await;
    view.messages.iter().filter(|message| message.call.is_some()).map(|m| m.text()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_nested_approval_request_is_answered_once_at_the_root() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = start(&world);
    let root = runtime.begin().await;
    runtime.say(&root, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#)]);
    world.asked().await.call(&[("c9", "shell", "{}")]);
    settle().await;
    let child = children(&runtime, &root).await.remove(0);
    let grandchild = children(&runtime, &child).await.remove(0);
    for session in [&root, &child] {
        let view = runtime.state(session).await;
        assert_eq!(view.asked.len(), 1);
        assert_eq!((&view.asked[0].session, &*view.asked[0].tool), (&grandchild, "shell"));
    }
    let call = runtime.state(&root).await.asked[0].question.to_string();
    let receipt =
        within(runtime.submit(&root, approve(&call, ApprovalDecision::Allow))).await.unwrap();
    assert_eq!(receipt.session, grandchild);
    let job = within(world.shell.started()).await;
    // The first answer counts, in whichever session the next one is given.
    for session in [&root, &child, &grandchild] {
        let late = within(runtime.submit(session, approve(&call, ApprovalDecision::Deny))).await;
        assert!(matches!(late, Err(Error::Refused(_))), "{late:?}");
    }
    settle().await;
    assert!(runtime.state(&root).await.asked.is_empty());
    job.finish(Outcome::success("ran"));
    for word in ["deep", "middle", "top"] {
        let asked = world.asked().await;
        asked.say(word);
        asked.finish();
    }
    runtime.watch(&root, Cursor::START).await.until("top<answered><done>").await;
    assert_eq!(results(&runtime, &root).await, ["middle"]);
    assert_eq!(results(&runtime, &child).await, ["deep"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_request_is_forwarded_again_after_a_restart() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    world.asked().await.call(&[("c9", "shell", "{}")]);
    settle().await;
    within(runtime.close(FOREVER)).await;
    drop(runtime);
    world.reopen();
    let runtime = start(&world);
    within(runtime.recover()).await.unwrap();
    settle().await;
    let asked = runtime.state(&parent).await.asked.clone();
    assert_eq!(asked.len(), 1, "the request is known once");
    let deny = approve(asked[0].question.as_str(), ApprovalDecision::Deny);
    within(runtime.submit(&parent, deny)).await.unwrap();
    settle().await;
    assert!(runtime.state(&parent).await.asked.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_subagent_that_uses_up_its_budget_is_stopped() {
    let world = World::new();
    let budget = Budget { steps: Some(2), ..Budget::default() };
    let runtime = start_with(&world, SubagentLimits { budget, ..SubagentLimits::default() });
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let one = r#"{"task":"a","max_steps":1}"#;
    let many = r#"{"task":"b","max_steps":9}"#;
    world
        .asked()
        .await
        .call(&[("c1", subagents::SPAWN_TOOL_NAME, one), ("c2", subagents::SPAWN_TOOL_NAME, many)]);
    let mut children_asked = 0;
    while runtime.state(&parent).await.subagents.iter().any(|known| !known.over)
        || children_asked == 0
    {
        children_asked += 1;
        let asked = world.asked().await;
        asked.say("looking");
        asked.call(&[(
            &format!("l{children_asked}"),
            "look",
            &format!("{{\"n\":{children_asked}}}"),
        )]);
        within(world.look.started()).await.finish(Outcome::success("seen"));
        settle().await;
    }
    assert_eq!(children_asked, 3, "one step for the first and two for the second");
    for result in results(&runtime, &parent).await {
        assert!(result.contains("max turn iterations reached"), "{result}");
        assert!(result.contains("the last it said: looking"), "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn depth_and_number_are_limited() {
    let world = World::new();
    let runtime =
        start_with(&world, SubagentLimits { depth: 1, at_once: 1, ..SubagentLimits::default() });
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let calls = [
        ("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#),
        ("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#),
    ];
    world.asked().await.call(&calls);
    let asked = world.asked().await;
    settle().await;
    let child = children(&runtime, &parent).await;
    assert_eq!(child.len(), 1);
    let tools = runtime.state(&child[0]).await.toolset.daemon.clone().unwrap();
    assert!(!tools.contains(&subagents::SPAWN_TOOL_NAME.to_owned()), "{tools:?}");
    asked.finish();
    world.asked().await.finish();
    settle().await;
    let full = "1 subagents work already; wait for one of them";
    assert!(results(&runtime, &parent).await.iter().any(|result| result == full));
}

#[tokio::test(start_paused = true)]
async fn policy_applies_to_subagents() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Delegate];
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    settle().await;
    let view = runtime.state(&parent).await;
    assert!(view.subagents.is_empty() && view.open.as_ref().unwrap().waits_for_approval());
}

#[tokio::test(start_paused = true)]
async fn subagents_are_deleted_with_their_parent_but_not_with_its_fork() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    let _asked = world.asked().await;
    settle().await;
    let child = children(&runtime, &parent).await.remove(0);
    let fork = within(runtime.fork(&parent, None)).await.unwrap().session;
    within(runtime.remove(&fork)).await.unwrap();
    assert!(runtime.state(&child).await.busy(), "it works for the parent");
    within(runtime.remove(&parent)).await.unwrap();
    for session in [&parent, &child] {
        assert!(matches!(within(runtime.view(session)).await, Err(Error::NotFound(_))));
    }
}

/// Models choose their own call ids, and both of these choose the same.
#[tokio::test(start_paused = true)]
async fn an_answer_reaches_the_subagent_that_asked() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = start(&world);
    let root = runtime.begin().await;
    runtime.say(&root, "go").await.unwrap();
    let calls = [
        ("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#),
        ("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#),
    ];
    world.asked().await.call(&calls);
    for _ in 0..2 {
        world.asked().await.call(&[("call_1", "shell", "{}")]);
    }
    settle().await;
    let asked = runtime.state(&root).await.asked.clone();
    assert_eq!(asked.len(), 2);
    for asked in asked.into_iter().rev() {
        let allow = approve(asked.question.as_str(), ApprovalDecision::Allow);
        let receipt = within(runtime.submit(&root, allow)).await.unwrap();
        assert_eq!(receipt.session, asked.session);
        assert_eq!(within(world.shell.started()).await.call.session, asked.session);
    }
}
