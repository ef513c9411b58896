//! Tests of subagents that are held after a restart until a person decides.

use quintet_kernel::event::ApprovalDecision;
use quintet_kernel::policy::Recovery;
use quintet_kernel::port::Sessions as _;
use quintet_kernel::session::TurnStatus;
use quintet_kernel::{Cursor, SessionId};
use quintet_runtime::{Runtime, subagents};

use super::{approve, children, results, start};
use crate::world::{Client as _, FOREVER, World, settle, within};

/// A session and its subagent, both interrupted and held; the session itself was released.
async fn held(world: &mut World) -> (Runtime, SessionId, SessionId) {
    world.recovery = Recovery::Ask;
    let runtime = start(world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    let asked = world.asked().await;
    settle().await;
    within(runtime.close(FOREVER)).await;
    drop((asked, runtime));
    world.reopen();
    let runtime = start(world);
    within(runtime.recover()).await.unwrap();
    settle().await;
    let own = runtime.state(&parent).await.open.as_ref().unwrap().question().unwrap();
    within(runtime.submit(&parent, approve(own.as_str(), ApprovalDecision::Allow))).await.unwrap();
    settle().await;
    let child = children(&runtime, &parent).await.remove(0);
    (runtime, parent, child)
}

#[tokio::test(start_paused = true)]
async fn a_held_subagent_is_an_approval_request_at_the_root() {
    let mut world = World::new();
    let (runtime, parent, child) = held(&mut world).await;
    let asked = runtime.state(&parent).await.asked.clone();
    assert_eq!(asked.len(), 1, "asked once");
    assert_eq!((&asked[0].session, &*asked[0].tool), (&child, "resume_turn"));
    let go_on = approve(asked[0].question.as_str(), ApprovalDecision::Allow);
    let receipt = within(runtime.submit(&parent, go_on)).await.unwrap();
    assert_eq!(receipt.session, child);
    for words in ["found", "read"] {
        let asked = world.asked().await;
        asked.say(words);
        asked.finish();
    }
    runtime.watch(&parent, Cursor::START).await.until("read<answered><done>").await;
    assert!(runtime.state(&parent).await.asked.is_empty());
    assert_eq!(results(&runtime, &parent).await, ["found"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_subagent_can_be_cancelled_at_the_root() {
    let mut world = World::new();
    let (runtime, parent, child) = held(&mut world).await;
    let call = runtime.state(&parent).await.asked[0].question.clone();
    within(runtime.submit(&parent, approve(call.as_str(), ApprovalDecision::Deny))).await.unwrap();
    world.asked().await.finish();
    settle().await;
    assert_eq!(runtime.state(&child).await.turns[0].status, TurnStatus::Cancelled);
    assert!(results(&runtime, &parent).await[0].contains("did not finish"));
}

#[tokio::test(start_paused = true)]
async fn releasing_a_subagent_directly_closes_the_request_at_the_root() {
    let mut world = World::new();
    let (runtime, parent, child) = held(&mut world).await;
    let call = runtime.state(&parent).await.asked[0].question.clone();
    within(runtime.submit(&child, approve(call.as_str(), ApprovalDecision::Allow))).await.unwrap();
    settle().await;
    assert!(runtime.state(&parent).await.asked.is_empty());
    world.asked().await.finish();
}

#[tokio::test(start_paused = true)]
async fn no_request_is_left_of_a_cancelled_nested_subagent() {
    let mut world = World::new();
    world.recovery = Recovery::Ask;
    let runtime = start(&world);
    let root = runtime.begin().await;
    runtime.say(&root, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::SPAWN_TOOL_NAME, r#"{"task":"a"}"#)]);
    world.asked().await.call(&[("c2", subagents::SPAWN_TOOL_NAME, r#"{"task":"b"}"#)]);
    let asked = world.asked().await;
    settle().await;
    within(runtime.close(FOREVER)).await;
    drop((asked, runtime));
    world.reopen();
    let runtime = start(&world);
    within(runtime.recover()).await.unwrap();
    settle().await;
    let own = runtime.state(&root).await.open.as_ref().unwrap().question().unwrap();
    within(runtime.submit(&root, approve(own.as_str(), ApprovalDecision::Allow))).await.unwrap();
    settle().await;
    let child = children(&runtime, &root).await.remove(0);
    let of = async |session: &SessionId| {
        let asked = runtime.state(&root).await.asked.clone();
        asked.into_iter().find(|asked| asked.session == *session).map(|asked| asked.question)
    };
    let go_on = of(&child).await.unwrap();
    within(runtime.submit(&root, approve(go_on.as_str(), ApprovalDecision::Allow))).await.unwrap();
    settle().await;
    let grandchild = children(&runtime, &child).await.remove(0);
    let stop = of(&grandchild).await.unwrap();
    within(runtime.submit(&root, approve(stop.as_str(), ApprovalDecision::Deny))).await.unwrap();
    // The child continues with what it has, and no approval request is left.
    let _goes_on = world.asked().await;
    settle().await;
    assert!(runtime.state(&root).await.asked.is_empty());
}
