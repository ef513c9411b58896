//! The audit log of tool calls.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::daemon::{World, until};
use crate::desktop::open_app;

fn log(world: &World) -> PathBuf {
    world.home.path().join("data/audit.jsonl")
}

/// Waits until the log has this many lines, and returns them.
async fn lines(world: &World, count: usize) -> Vec<Value> {
    let mut text = String::new();
    until(&format!("the log has {count} lines"), async || {
        text = std::fs::read_to_string(log(world)).unwrap_or_default();
        text.lines().count() >= count && text.ends_with('\n')
    })
    .await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_decision_is_logged_exactly_once() {
    let config = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n\
                  [[jarvis.tools]]\nname = \"wipe\"\nrisk = \"forbidden\"\n";
    let mut world = World::start(config).await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let wipe = json!({ "name": "wipe", "args": { "password": "hunter2" } });
    let script =
        json!([{ "tools": [wipe, open_app("bank"), open_app("mail")] }, { "text": "Ok." }]);
    let mut frames = desktop.chat(&id, script).await;
    let (bank, mail) = (frames.next_of("tool.request").await, frames.next_of("tool.request").await);
    let denied = json!({ "id": bank.data["id"], "ok": false, "error": "denied" });
    desktop.result(&id, denied).await;
    desktop.done(&id, &mail, "Launched, with sk-0123456789abcdefghij in it").await;
    frames.rest().await;
    let entries = lines(&world, 3).await;
    let shown: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!([entry["tool_name"], entry["risk"], entry["decision"], entry["by"], entry["ok"]])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!(["wipe", "forbidden", "refused", "policy", false]),
            json!(["open_app", "risky", "denied", "client", false]),
            json!(["open_app", "risky", "auto", "policy", true]),
        ]
    );
    assert_eq!(entries[0]["parameters"], json!({ "password": "***" }));
    assert_eq!(entries[2]["result"], "Launched, with *** in it");
    assert_eq!((&entries[1]["agent"], &entries[1]["session_id"]), (&json!("general"), &json!(id)));
    let mode = std::fs::metadata(log(&world)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Another protocol, an approval, and a crash right after it.
    let client = world.client();
    let other = client.create(world.workspace()).await;
    let shell = json!({ "name": "shell", "args": { "command": "echo x" } });
    client.say(&other, json!([{ "tools": [shell] }, { "text": "Ok." }])).await;
    let events = client.until(&other, |event| event.kind() == "approval_requested").await;
    let call = events[events.len() - 1].json["data"]["tool_call_id"].as_str().unwrap().to_owned();
    client.approve(&other, &call, "approve").await;
    client.until_over(&other).await;
    world.kill();
    // An incomplete line is ignored.
    let mut text = std::fs::read_to_string(log(&world)).unwrap();
    text.push_str("{\"session_id\":");
    std::fs::write(log(&world), text).unwrap();
    world.restart();
    let entries = lines(&world, 4).await;
    assert_eq!(entries.len(), 4);
    assert_eq!(
        (&entries[3]["tool_name"], &entries[3]["decision"]),
        (&json!("shell"), &json!("allow_once"))
    );
    assert_eq!((&entries[3]["agent"], &entries[3]["by"]), (&json!("code"), &json!("client")));
}
