//! The terminal protocol over its real socket.

mod client;
mod limits;
mod original;
mod sessions;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::daemon::World;
use client::{Terminal, methods, of, text};

pub(crate) const WITH_APPROVALS: &str =
    "[approval]\nkinds = [\"write\", \"exec\"]\n[verify]\nauto = false\n";

pub(crate) fn shell(command: &str) -> Value {
    json!({ "name": "shell", "args": { "command": command } })
}

#[tokio::test]
async fn a_simple_query() {
    let world = World::start("").await;
    let mut terminal = Terminal::connect(&world.terminal()).await;
    let ready = terminal.initialize(json!(["streaming"])).await;
    assert_eq!(ready["status"], "ready");
    assert_eq!(ready["server_info"]["name"], "quintet");
    let models = ready["models"].as_array().unwrap();
    assert!(models.iter().any(|model| model["name"] == "fake/fake"), "{models:?}");
    let script = json!([{ "deltas": ["The ls", " command", " lists files."], "usage": [20, 5] }]);
    let query = terminal.query(world.workspace(), script).await;
    let notes = terminal.until("stream.complete").await;
    assert_eq!(text(&notes), "The ls command lists files.");
    let tokens = of(&notes, "stream.token");
    let indexes: Vec<u64> = tokens.iter().map(|token| token["index"].as_u64().unwrap()).collect();
    assert_eq!(indexes, (0..tokens.len() as u64).collect::<Vec<_>>());
    assert!(tokens.iter().all(|token| token["token"] == token["content"]));
    assert!(tokens.iter().all(|token| token["query_id"] == query.as_str()));
    let complete = of(&notes, "stream.complete")[0];
    assert_eq!((&complete["query_id"], &complete["status"]), (&json!(query), &json!("success")));
    assert_eq!(complete["metadata"]["total_tokens"], 25);
    assert_eq!(complete["metadata"]["model_used"], "fake/fake");
    assert_eq!(complete["metadata"]["tools_executed"], json!([]));
    assert!(complete["metadata"]["duration_ms"].is_u64());
}

#[tokio::test]
async fn a_query_with_tools_and_an_approval() {
    let world = World::start(WITH_APPROVALS).await;
    std::fs::write(world.workspace().join("a.txt"), "old\n").unwrap();
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let write = json!({ "name": "write_file", "args": { "path": "a.txt", "content": "new\n" } });
    let script = json!([{ "tools": [write] }, { "text": "Done:\n```rust\nfn a() {}\n```\n" }]);
    let query = terminal.query(world.workspace(), script).await;
    let notes = terminal.until("tool.request_approval").await;
    assert!(methods(&notes).contains(&"agent.thinking".into()));
    let approval = of(&notes, "tool.request_approval")[0];
    assert_eq!(approval["query_id"], query.as_str());
    assert_eq!(
        (&approval["tool"]["name"], &approval["tool_name"]),
        (&json!("write_file"), &json!("write_file"))
    );
    assert_eq!(approval["tool"]["category"], "file_system");
    assert_eq!(approval["arguments"]["path"], "a.txt");
    assert_eq!(approval["preview"]["type"], "diff");
    let diff = approval["preview"]["content"].as_str().unwrap();
    assert!(diff.contains("-old") && diff.contains("+new"), "{diff}");
    assert_eq!(approval["risk_assessment"]["level"], approval["risk_level"]);
    assert!(approval["risk_assessment"]["reversible"].is_boolean());
    assert!(!approval["risk_assessment"]["reasons"].as_array().unwrap().is_empty());
    assert_eq!(approval["timeout"], 300);
    let answer =
        json!({ "execution_id": approval["execution_id"], "approved": true, "options": {} });
    let answered = terminal.request("tool.approve", answer.clone()).await.unwrap();
    assert_eq!(answered, json!({ "status": "approved", "execution_id": approval["execution_id"] }));
    let notes = terminal.until("stream.complete").await;
    let done = of(&notes, "tool.complete")[0];
    assert_eq!(
        (&done["status"], &done["execution_id"]),
        (&json!("success"), &approval["execution_id"])
    );
    assert_eq!(done["result"]["files_modified"], json!(["a.txt"]));
    assert!(done["result"]["duration_ms"].is_u64());
    assert!(!of(&notes, "tool.progress").is_empty());
    let blocks = of(&notes, "stream.block");
    let code = blocks.iter().find(|block| block["block"]["type"] == "code").unwrap();
    assert_eq!(
        (&code["block"]["language"], &code["content"]),
        (&json!("rust"), &json!("fn a() {}"))
    );
    let complete = of(&notes, "stream.complete")[0];
    assert_eq!(complete["metadata"]["tools_executed"], json!(["write_file"]));
    assert_eq!(std::fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "new\n");
    let again = terminal.request("tool.approve", answer).await.unwrap_err();
    assert_eq!(again["code"], -32002, "{again}");
    let phases =
        |phase: &str| of(&notes, "agent.thinking").iter().any(|note| note["phase"] == phase);
    assert!(phases("executing") && phases("generating"));
}

#[tokio::test]
async fn a_query_can_be_cancelled() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let query =
        terminal.query(world.workspace(), json!([{ "text": "Processing...", "hang": true }])).await;
    terminal.until("stream.token").await;
    let cancel = json!({ "query_id": query });
    let cancelled = terminal.request("agent.cancel", cancel.clone()).await.unwrap();
    assert_eq!(cancelled, json!({ "cancelled": true, "query_id": query }));
    let notes = terminal.until("stream.complete").await;
    assert_eq!(of(&notes, "stream.complete")[0]["status"], "cancelled");
    assert!(of(&notes, "stream.error").is_empty());
    let again = terminal.request("agent.cancel", cancel).await.unwrap();
    assert_eq!(again["cancelled"], false);
    for unknown in ["q-turn_none", "none"] {
        let unknown = terminal.request("agent.cancel", json!({ "query_id": unknown })).await;
        assert_eq!(unknown.unwrap_err()["code"], -32602);
    }
}

#[tokio::test]
async fn a_call_is_denied_and_choices_are_remembered() {
    let world = World::start(WITH_APPROVALS).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "tools": [shell("echo one")] }, { "tools": [shell("echo one")] }, { "text": "ok" }]);
    terminal.query(world.workspace(), script.clone()).await;
    let notes = terminal.until("tool.request_approval").await;
    let approval = of(&notes, "tool.request_approval")[0];
    assert_eq!(approval["preview"]["type"], "command");
    let answer = json!({
        "execution_id": approval["execution_id"],
        "approved": false,
        "options": { "remember_choice": true, "apply_to_similar": false },
    });
    let answered = terminal.request("tool.approve", answer).await.unwrap();
    assert_eq!(answered["status"], "rejected");
    let notes = terminal.until("stream.complete").await;
    let ends: Vec<_> =
        of(&notes, "tool.complete").iter().map(|end| end["status"].clone()).collect();
    assert_eq!(ends, ["denied", "denied"], "the second is answered from memory: {notes:#?}");
    assert_eq!(of(&notes, "tool.complete")[0]["error"]["code"], -32005);
    let unknown = json!({ "execution_id": "exec-none", "approved": true });
    assert_eq!(terminal.request("tool.approve", unknown).await.unwrap_err()["code"], -32602);
}

#[tokio::test]
async fn an_approval_request_expires() {
    let extra = format!("{WITH_APPROVALS}[terminal]\napproval_timeout_seconds = 1\n");
    let world = World::start(&extra).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    terminal
        .query(world.workspace(), json!([{ "tools": [shell("echo x")] }, { "text": "ok" }]))
        .await;
    let notes = terminal.until("tool.request_approval").await;
    let approval = of(&notes, "tool.request_approval")[0];
    assert_eq!(approval["timeout"], 1);
    let execution = approval["execution_id"].clone();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(of(&notes, "tool.complete")[0]["status"], "denied");
    assert_eq!(of(&notes, "stream.complete")[0]["status"], "success");
    let late = json!({ "execution_id": execution, "approved": true });
    assert_eq!(terminal.request("tool.approve", late).await.unwrap_err()["code"], -32003);
}

#[tokio::test]
async fn options_and_context_reach_the_model() {
    let world = World::start(WITH_APPROVALS).await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "tools": [shell("echo free")] }, { "text": "ok" }]);
    let message = format!("go {{{{script: {script}}}}}");
    let params = json!({
        "message": message,
        "context": {
            "cwd": world.workspace(),
            "shell": "bash",
            "env": { "MY_SECRET": "correct-horse-battery" },
            "recent_commands": [{ "command": "cargo test", "exit_code": 1, "timestamp": 1_696_435_210 }],
            "recent_output": "error: correct-horse-battery",
            "open_files": ["src/main.rs"],
        },
        "options": { "max_tokens": 77, "temperature": 0.5, "require_approval": false },
    });
    terminal.request("agent.query", params).await.unwrap();
    let notes = terminal.until("stream.complete").await;
    assert!(of(&notes, "tool.request_approval").is_empty(), "{notes:#?}");
    let call = &world.model.calls()[0];
    assert_eq!((&call["max_tokens"], &call["temperature"]), (&json!(77), &json!(0.5)));
    let messages = call["messages"].to_string();
    for part in ["cargo test", "exit code 1", "src/main.rs", "[redacted]"] {
        assert!(messages.contains(part), "{part} is not in {messages}");
    }
    assert!(!messages.contains("correct-horse"), "{messages}");
    let options = json!({ "tools_enabled": false, "stream": false });
    let script = json!([{ "deltas": ["one ", "two"] }]);
    terminal.query_with(world.workspace(), script, options).await.unwrap();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(text(&notes), "");
    assert_eq!(of(&notes, "stream.block")[0]["content"], "one two");
    assert_eq!(of(&notes, "stream.complete")[0]["metadata"]["content"], "one two");
    let calls = world.model.calls();
    assert_eq!(calls[calls.len() - 1]["tool_choice"], "none");
}

#[tokio::test]
async fn commands_run_in_the_directory_of_the_query() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    let script = json!([{ "tools": [shell("pwd")] }, { "text": "ok" }]);
    for folder in [world.workspace(), elsewhere.as_path()] {
        terminal.query(folder, script.clone()).await;
        terminal.until("stream.complete").await;
        let calls = world.model.calls();
        let last = calls[calls.len() - 1]["messages"].as_array().unwrap().last().unwrap().clone();
        assert!(last.to_string().contains(folder.to_str().unwrap()), "{last}");
    }
    // A field that is not sent keeps its value; an update between queries applies to the next one.
    let message = format!("go {{{{script: {script}}}}}");
    for folder in [elsewhere.as_path(), world.workspace()] {
        terminal.request("agent.query", json!({ "message": message })).await.unwrap();
        terminal.until("stream.complete").await;
        let calls = world.model.calls();
        let last = calls[calls.len() - 1]["messages"].as_array().unwrap().last().unwrap().clone();
        assert!(last.to_string().contains(folder.to_str().unwrap()), "{last}");
        terminal.notify("context.update", json!({ "cwd": world.workspace() })).await;
    }
}

#[tokio::test]
async fn a_query_without_tools_offers_none() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let options = json!({ "tools_enabled": false });
    terminal.query_with(world.workspace(), json!([{ "text": "ok" }]), options).await.unwrap();
    terminal.until("stream.complete").await;
    assert!(world.model.calls()[0].get("tools").is_none());
}

#[tokio::test]
async fn approvals_can_be_required_by_the_query() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    let script = json!([{ "tools": [shell("echo x")] }, { "text": "ok" }]);
    let options = json!({ "require_approval": true });
    terminal.query_with(world.workspace(), script, options).await.unwrap();
    terminal.until("tool.request_approval").await;
}

#[tokio::test]
async fn a_failing_model_gives_an_error_and_one_end() {
    let world = World::start("").await;
    let mut terminal = Terminal::ready(&world.terminal()).await;
    terminal.query(world.workspace(), json!([{ "status": 400, "message": "no such luck" }])).await;
    let notes = terminal.until("stream.complete").await;
    let error = of(&notes, "stream.error")[0];
    assert_eq!(error["error"]["code"], -32001);
    assert!(error["error"]["details"].as_str().unwrap().contains("no such luck"), "{error}");
    assert_eq!(of(&notes, "stream.complete")[0]["status"], "error");
    assert_eq!(of(&notes, "stream.complete").len(), 1);
}

#[tokio::test]
async fn suggestions_are_sent_to_clients_that_want_them() {
    let world = World::start("").await;
    let mut terminal = Terminal::connect(&world.terminal()).await;
    terminal.initialize(json!(["suggestions"])).await;
    let typed =
        |command: &str, exit_code: i64| json!({ "command": command, "exit_code": exit_code });
    let commands = [typed("make", 2), typed("make clean", 0), typed("make", 2)];
    terminal.notify("context.update", json!({ "recent_commands": commands })).await;
    let note = terminal.note().await;
    assert_eq!(note["method"], "suggestion.inline");
    assert_eq!(note["params"]["suggestion"], "make clean");
    assert_eq!(note["params"]["source"], "command_history");
}

#[tokio::test]
async fn the_socket_is_private_and_removed_with_the_daemon() {
    let mut world = World::start("").await;
    let socket = world.terminal();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut terminal = Terminal::ready(&socket).await;
    world.kill();
    assert!(socket.exists(), "a killed daemon cannot remove it");
    while terminal.message().await.is_some() {}
    world.restart();
    let mut terminal = Terminal::ready(&socket).await;
    assert!(world.terminate().success());
    assert_eq!(terminal.message().await, None);
    assert!(!socket.exists());
}
