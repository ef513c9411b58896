//! Tests that commands cannot access the daemon that runs them.

use quintet_tools::sandbox::probe;
use serde_json::{Value, json};

use crate::daemon::World;

const NO_APPROVALS: &str =
    "[approval]\nkinds = []\n[verify]\nauto = false\n[sandbox]\nmode = \"off\"\n";

/// The result of a command.
async fn run(world: &World, command: &str) -> Value {
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let call = json!({ "name": "shell", "args": { "command": command } });
    client.say(&id, json!([{ "tools": [call] }, { "text": "done" }])).await;
    let events = client.until_over(&id).await;
    let completed = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    completed.json["data"].clone()
}

#[tokio::test]
async fn a_command_leaves_the_sandbox_once_after_approval() {
    let world = World::start("[approval]\nkinds = []\n[verify]\nauto = false\n").await;
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = outside.path().join("x");
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let call = |permissions| {
        let command = format!("touch {}", file.display());
        json!({ "name": "shell", "args": { "command": command, "permissions": permissions } })
    };
    let (none, write) = (call(Value::Null), call(json!({ "write": [outside.path()] })));
    client.say(&id, json!([{ "tools": [none] }, { "tools": [write] }, { "text": "done" }])).await;
    let events = client.until(&id, |event| event.kind() == "approval_requested").await;
    assert!(!file.exists());
    let asked = &events.last().unwrap().json["data"];
    let shown = asked["preview"].as_str().unwrap();
    assert!(shown.contains(&format!("write {}", outside.path().display())), "{asked}");
    client.approve(&id, asked["tool_call_id"].as_str().unwrap(), "approve").await;
    client.until_over(&id).await;
    assert!(file.exists());
}

#[tokio::test]
async fn a_command_cannot_access_secrets_or_sockets_of_the_daemon() {
    let (confined, free) = (World::start("").await, World::start(NO_APPROVALS).await);
    let kernel = probe();
    let has_landlock = kernel.landlock.is_some();
    let dial = |world: &World| {
        format!("exec 3<>/dev/tcp/{}", world.base().trim_start_matches("http://").replace(':', "/"))
    };
    let daemon = "$(grep PPid /proc/$PPID/status | cut -f2)";
    for (is_stopped, command) in [
        (has_landlock, "cat ../quintet.toml".to_owned()),
        (has_landlock, "cat ../data/quintet.db > /dev/null".to_owned()),
        (has_landlock, format!("cat /proc/{daemon}/environ")),
        (kernel.seccomp, "dial".to_owned()),
    ] {
        let of = |world| if command == "dial" { dial(world) } else { command.clone() };
        let done = run(&free, &of(&free)).await;
        assert_eq!(done["ok"], true, "the counter-check failed: {command}: {done}");
        let done = run(&confined, &of(&confined)).await;
        assert_eq!(done["ok"], !is_stopped, "{command}: {done}");
    }
}
