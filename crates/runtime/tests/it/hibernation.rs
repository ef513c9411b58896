//! Tests that idle sessions leave memory, unnoticed by clients.

use std::time::Duration;

use quintet_kernel::port::Sessions;
use quintet_kernel::tool::{Outcome, Risk, ToolKind};
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{ClientRef, Command, Cursor, Event};
use tokio::task::JoinSet;

use crate::world::{Client, World, label, within};

#[tokio::test(start_paused = true)]
async fn an_idle_session_leaves_memory() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    assert_eq!(runtime.awake(), 1);
    tokio::time::sleep(world.timing.hibernate_after - Duration::from_secs(1)).await;
    assert_eq!(runtime.awake(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(runtime.awake(), 0);

    let receipt = runtime.label(&session, "a").await.unwrap();
    assert_eq!((receipt.records[0].seq, runtime.awake()), (2, 1));
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!(runtime.awake(), 0);

    assert_eq!(runtime.state(&session).await.head, 2);
    assert_eq!(runtime.awake(), 1);
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!(runtime.awake(), 0);
    assert_eq!(world.names_of(&session).await, ["created", "labelled"]);
}

#[tokio::test(start_paused = true)]
async fn the_most_recently_used_sessions_stay_within_the_budget() {
    let mut world = World::new();
    world.timing.idle_bytes = 3 * 16 * 1024;
    let runtime = world.start();
    let first = runtime.begin().await;
    for _ in 0..2 {
        runtime.begin().await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(runtime.awake(), 3);
    // A view counts as use.
    runtime.state(&first).await;
    let busy = runtime.begin().await;
    runtime.say(&busy, "go").await.unwrap();
    let asked = world.asked().await;
    for _ in 0..4 {
        runtime.begin().await;
        runtime.state(&first).await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(runtime.awake(), 4, "three idle sessions and a busy one");
    world.journal.fail_reads(1);
    runtime.state(&first).await;
    assert_eq!(world.journal.read_failures(), 1, "the session was still in memory");
    world.journal.fail_reads(0);
    // A session that exceeds the budget stays alone.
    asked.say(&"x".repeat(world.timing.idle_bytes));
    asked.finish();
    runtime.watch(&busy, Cursor::START).await.turn_over().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(runtime.awake(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_call_a_client_runs_stays() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let tool = ClientTool {
        name: "open".into(),
        description: "opens".into(),
        schema: serde_json::json!({ "type": "object" }),
        risk: Risk::Low,
        repeatable: false,
        front_end: None,
        strict: false,
    };
    let tools = Toolset { client: vec![tool], ..Toolset::default() };
    runtime.submit(&session, Command::SetTools(tools)).await.unwrap();
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.call(&[("c1", "open", "{}")]);
    runtime.watch(&session, Cursor::START).await.until("<call>").await;
    let state = runtime.state(&session).await;
    let calls = vec![state.open.as_ref().unwrap().calls()[0].id().clone()];
    drop(state);
    let by = ClientRef::connected("desk", "1");
    let claim = Command::ClaimCalls { calls: calls.clone(), by: by.clone(), came_back: false };
    runtime.submit(&session, claim).await.unwrap();
    tokio::time::sleep(world.timing.hibernate_after * 3).await;
    assert_eq!(runtime.awake(), 1);
    let actual = world.journal_of(&session).await;
    assert!(matches!(actual.last().unwrap().event, Event::CallClaimed { .. }));
    let (call, outcome) = (calls[0].clone(), Outcome::success("done"));
    runtime.submit(&session, Command::ReturnResult { call, by, outcome }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_session_stays() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    tokio::time::sleep(world.timing.hibernate_after * 3).await;
    assert_eq!(runtime.awake(), 1);
    asked.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    tokio::time::sleep(world.timing.hibernate_after * 3).await;
    assert_eq!(runtime.awake(), 1);
    job.finish(Outcome::success("fine"));
    world.asked().await.finish();
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!(runtime.awake(), 0);
    assert_eq!(world.names_of(&session).await.last(), Some(&"done"));
}

#[tokio::test(start_paused = true)]
async fn a_hibernated_session_can_be_approved() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<ask>").await;
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!(runtime.awake(), 0);

    runtime.allow(&session, "c1").await.unwrap();
    within(world.shell.started()).await.finish(Outcome::success("fine"));
    world.asked().await.finish();
    watcher.turn_over().await;
    let expected = "<created><said><turn><step><answered><ask><word><call><result><step>";
    assert_eq!(watcher.story(), format!("{expected}<answered><done>"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_a_hibernated_session_can_be_cancelled() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!(runtime.awake(), 0);
    runtime.cancel(&session).await.unwrap();
    assert!(world.names_of(&session).await.ends_with(&["stop", "result", "cancelled"]));
}

/// Commands arrive all the time, also while the session leaves memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_command_is_lost() {
    const CLIENTS: usize = 6;
    const COMMANDS: usize = 300;
    let mut world = World::new();
    world.timing.hibernate_after = Duration::from_nanos(1);
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (runtime, session) = (runtime.clone(), session.clone());
        clients.spawn(async move {
            for n in 0..COMMANDS {
                let receipt = runtime.submit(&session, label(&format!("{client}-{n}"))).await;
                assert_eq!(receipt.unwrap().records.len(), 1);
                if n % 5 == 0 {
                    assert!(runtime.view(&session).await.unwrap().head > 1);
                }
            }
        });
    }
    within(async {
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        while watcher.items.len() <= CLIENTS * COMMANDS {
            watcher.more().await.unwrap();
        }
    })
    .await;
    let state = runtime.state(&session).await;
    assert_eq!(state.labels.len(), CLIENTS * COMMANDS);
    assert_eq!(state.head, 1 + (CLIENTS * COMMANDS) as u64);
    assert_eq!(watcher.items.len(), 1 + CLIENTS * COMMANDS);
    let removed = Command::SetLabel { key: "0-0".into(), value: None };
    within(runtime.submit(&session, removed)).await.unwrap();
}
