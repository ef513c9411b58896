//! Subagents: sessions that work for a call of another one.

use std::sync::Arc;

use quintet_kernel::port::Sessions;
use quintet_kernel::session::TurnStatus;
use quintet_kernel::{Cursor, SessionId};
use quintet_runtime::{Parts, Runtime, subagents};

use crate::world::{Client, World, settle, within};

fn start(world: &World) -> Runtime {
    let parts = world.parts();
    let mut rules = (*parts.rules).clone();
    rules.tools.push(Arc::new(subagents::spec()));
    Runtime::new(Parts { rules: Arc::new(rules), ..parts })
}

async fn children(runtime: &Runtime, parent: &SessionId) -> Vec<SessionId> {
    let view = within(runtime.view(parent)).await.unwrap();
    view.subagents.iter().map(|known| known.session.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn subagents_work_side_by_side_and_their_words_are_read() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let calls =
        [("c1", subagents::NAME, r#"{"task":"a"}"#), ("c2", subagents::NAME, r#"{"task":"b"}"#)];
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
    world.asked().await.call(&[("c1", subagents::NAME, r#"{"task":"a"}"#)]);
    let _asked = world.asked().await;
    runtime.cancel(&parent).await.unwrap();
    let child = children(&runtime, &parent).await.remove(0);
    let view = runtime.state(&child).await;
    assert_eq!(view.turns[0].status, TurnStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_with_the_subagent_and_its_parent() {
    let mut world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    world.asked().await.call(&[("c1", subagents::NAME, r#"{"task":"a"}"#)]);
    let asked = world.asked().await;
    settle().await;
    within(runtime.close()).await;
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
async fn a_subagent_gets_no_more_than_its_parent_has() {
    let world = World::new();
    let runtime = start(&world);
    let parent = runtime.begin().await;
    runtime.say(&parent, "go").await.unwrap();
    let narrowed = r#"{"task":"a","tools":["look"]}"#;
    let beyond = r#"{"task":"b","tools":["look","fly"]}"#;
    world.asked().await.call(&[("c1", subagents::NAME, narrowed), ("c2", subagents::NAME, beyond)]);
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
