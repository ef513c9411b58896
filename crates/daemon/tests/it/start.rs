//! Tests of starting, stopping and configuring the daemon.

use std::process::Stdio;

use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, over, text};
use crate::daemon::{World, quintet, until};

fn fails(arguments: &[&str]) -> String {
    let output = quintet(arguments).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "only the ready line goes to stdout");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_mistyped_key_is_an_error_that_names_the_right_one() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("q.toml");
    let check = |config: &str, says: &str| {
        std::fs::write(&file, config).unwrap();
        let error = fails(&["serve", "--config", file.to_str().unwrap()]);
        assert!(error.contains(says), "{error}");
    };
    check("[lisen]\nharness = \"off\"", "did you mean \"listen.harness\"?");
    check("[approval]\nkind = []", "did you mean \"approval.kinds\"?");
    check("[providers.x]\nbase_ur = \"\"", "did you mean \"providers.x.base_url\"?");
    check("[approval]\nkinds = [\"magic\"]", "there is no kind \"magic\"");
    check("[approval]\nkinds = \"exec\"", "approval.kinds must be a list of strings");
    check("[listen]\nharness = \"nowhere\"", "listen.harness must be an address");
    for protocol in ["harness", "jarvis", "agent", "agent_health", "windie", "openai"] {
        let open = format!("[listen]\n{protocol} = \"0.0.0.0:0\"");
        check(&open, &format!("listen.{protocol} = 0.0.0.0:0: other machines"));
        check(&open, "auth.token must be set, or it must be a loopback address");
    }
    let open =
        "[listen]\nwindie = \"0.0.0.0:0\"\n[windie]\ninstall_auth = true\n[auth]\ntoken = \"t\"";
    check(open, "windie.registration_secret must be set");
    check("[auth]\norigins = [\"http://localhost:3000/\"]", "is no origin");
    check("[[jarvis.tools]]\nname = \"x\"\nrisk = \"deadly\"", "\"deadly\" is not one of");
    check("[[jarvis.tools]]\nname = \"a b\"", "is no name for a tool");
    check("[[jarvis.tools]]\nname = \"x\"\nrisks = \"safe\"", "unknown field \"risks\"");
    check("[jarvis]\nworkspace = \"here\"", "jarvis.workspace must be an absolute path");
    check("[openai]\nworkspace = \"here\"", "openai.workspace must be an absolute path");
    check("[jarvis]\ntools = [\"x\"]", "jarvis.tools must be a list of tables");
    check("default_model = \"x/y\"", "names the provider \"x\"");
    check("[providers.x]\napi = \"telepathy\"", "does not speak \"telepathy\"");
    check("not toml", "is not TOML");
    assert!(fails(&["serve", "--config", "/nowhere/q.toml"]).contains("cannot be read"));
}

#[test]
fn the_effective_configuration_is_shown_without_secrets() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("q.toml");
    let config = "[listen]\njarvis = \"off\"\n[harness]\nauth_token = \"hush-hush\"\n[recovery]\npolicy = \"ask\"\n";
    std::fs::write(&file, config).unwrap();
    let output =
        quintet(&["config", "--config", file.to_str().unwrap(), "--listen", "harness=127.0.0.1:9"])
            .env("QUINTET_APPROVAL_KINDS", "write")
            .env("QUINTET_RECOVERY_POLICY", "leave")
            .output()
            .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    for line in [
        "approval.kinds = [\"write\"]  # QUINTET_APPROVAL_KINDS",
        "harness.auth_token = \"***\"  # ",
        "listen.harness = \"127.0.0.1:9\"  # --listen",
        "recovery.policy = \"leave\"  # QUINTET_RECOVERY_POLICY",
        "verify.auto = true  # default",
    ] {
        assert!(shown.contains(line), "{line} is not in:\n{shown}");
    }
    assert!(!shown.contains("hush-hush"));
}

#[test]
fn tools_are_listed_with_their_policy() {
    let output = quintet(&["tools", "--set", "approval.kinds=exec", "--schema"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("shell ").contains("exec     asks first"), "{shown}");
    assert!(line("write_file ").contains("write    allowed"), "{shown}");
    assert!(shown.contains("\"command\""), "{shown}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = quintet(&["tools", "--schema"]).stdout(writer).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((message.as_str(), output.status.success()), ("", true));
}

#[test]
fn models_are_listed_with_their_capabilities() {
    let listed = |arguments: &[&str]| {
        String::from_utf8(quintet(arguments).output().unwrap().stdout).unwrap()
    };
    let shown = listed(&["models"]);
    assert!(shown.contains("demo/demo") && shown.contains("more have no key"), "{shown}");
    assert!(!shown.contains("claude"), "{shown}");
    let shown = listed(&["models", "--all"]);
    let claude = shown.lines().find(|line| line.starts_with("anthropic/claude-sonnet-4-5 "));
    let claude = claude.unwrap_or_else(|| panic!("{shown}"));
    for word in ["no key", "200k tokens", "tools images thinks", "$3 in, $15 out"] {
        assert!(claude.contains(word), "{claude}");
    }
}

#[tokio::test]
async fn without_any_model_the_demo_model_answers() {
    let home = TempDir::new().unwrap();
    let mut child = quintet(&[
        "serve",
        "--data-dir",
        home.path().to_str().unwrap(),
        "--listen",
        "harness=127.0.0.1:0",
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(line.starts_with("{\"ready\":true,\"listeners\":{\""), "{line}");
    assert!(line.contains("\"harness\":\"http://127.0.0.1:"), "{line}");
    let client = Client::new(ready["listeners"]["harness"].as_str().unwrap());
    let id = client.create(home.path()).await;
    let part = json!({ "type": "text", "text": "count to 5" });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    let said = text(&client.until(&id, over).await);
    assert!(said.contains('1') && said.contains('5'), "{said}");
    child.kill().unwrap();
    let logs = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    child.wait().unwrap();
    assert!(logs.contains("OPENAI_API_KEY"), "{logs}");
}

#[tokio::test]
async fn sigterm_parks_running_turns_and_the_next_start_continues() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let mut follower = client.follow(&id, "0").await;
    let sleeping = json!({ "name": "shell", "args": { "command": "echo up; sleep 600" } });
    client.say(&id, json!([{ "tools": [sleeping] }, { "text": "I see" }])).await;
    while follower.next().await.unwrap().kind() != "tool_call_progress" {}
    let status = world.terminate();
    assert_eq!(status.code(), Some(0));
    while follower.next().await.is_some() {}
    assert_eq!(world.integrity(), "ok");
    world.restart();
    let client = world.client();
    let events = client.until(&id, over).await;
    assert_eq!(text(&events), "I see");
    let ended = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    assert!(ended.json["data"]["error"].as_str().unwrap().contains("how far it got is not known"));
    assert_eq!(events.iter().filter(|event| event.kind() == "tool_call_started").count(), 1);
}

#[tokio::test]
async fn recovery_can_ask_or_leave() {
    let rest = "[approval]\nkinds = []\n[verify]\nauto = false\n[recovery]\npolicy = ";
    let mut world = World::start(&format!("{rest}\"leave\"\n")).await;
    let id = world.client().create(world.workspace()).await;
    world.client().say(&id, json!([{ "text": "a", "hang": true }])).await;
    world.client().until(&id, |event| event.kind() == "model_output_delta").await;
    world.kill();
    world.restart();
    let events = world.client().until(&id, over).await;
    assert_eq!((text(&events).as_str(), events[events.len() - 1].kind()), ("a", "turn_failed"));

    let mut world = World::start(&format!("{rest}\"ask\"\n")).await;
    let id = world.client().create(world.workspace()).await;
    let turn = world.client().say(&id, json!([{ "text": "a", "hang": true }])).await;
    world.client().until(&id, |event| event.kind() == "model_output_delta").await;
    world.kill();
    world.restart();
    let client = world.client();
    client.until(&id, |event| event.kind() == "turn_held").await;
    assert_eq!(world.model.calls().len(), 1);
    client.post(&format!("/v1/sessions/{id}/turns/{turn}/retry"), json!({})).await;
    world.model.streaming(1).await;
    client.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await;
    assert_eq!(client.session(&id).await["status"], "canceled");
}

#[tokio::test]
async fn one_data_directory_has_one_daemon() {
    let world = World::start("").await;
    let data = world.home.path().join("data");
    let error =
        fails(&["serve", "--data-dir", data.to_str().unwrap(), "--listen", "harness=127.0.0.1:0"]);
    assert!(error.contains(data.to_str().unwrap()), "{error}");
    let port = world.base().strip_prefix("http://").unwrap();
    let other = TempDir::new().unwrap();
    let error = fails(&[
        "serve",
        "--data-dir",
        other.path().to_str().unwrap(),
        "--listen",
        &format!("harness={port}"),
    ]);
    assert!(error.contains("listen.harness"), "{error}");
}

#[tokio::test]
async fn a_newer_database_is_refused() {
    let mut world = World::start("").await;
    world.terminate();
    let data = world.home.path().join("data");
    let database = rusqlite::Connection::open(data.join("quintet.db")).unwrap();
    database.pragma_update(None, "user_version", 999).unwrap();
    database.pragma_update(None, "journal_mode", "delete").unwrap();
    drop(database);
    let before = std::fs::read(data.join("quintet.db")).unwrap();
    let error =
        fails(&["serve", "--data-dir", data.to_str().unwrap(), "--listen", "harness=127.0.0.1:0"]);
    assert!(error.contains("has format 999, and this version reads up to"), "{error}");
    assert_eq!(std::fs::read(data.join("quintet.db")).unwrap(), before);
}

#[tokio::test]
async fn a_missing_session_tree_is_rebuilt() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "hello" }])).await;
    client.until_over(&id).await;
    world.terminate();
    let tree = world.home.path().join("data/sessions");
    let events = std::fs::read_to_string(tree.join(&id).join("events.ndjson")).unwrap();
    assert_eq!(events.lines().count(), 8);
    let copy = world.home.path().join("copy");
    let data = world.home.path().join("data");
    let export = ["export", "--data-dir", data.to_str().unwrap(), "--to", copy.to_str().unwrap()];
    for _ in 0..2 {
        assert!(quintet(&export).output().unwrap().status.success());
        let copied = std::fs::read_to_string(copy.join(&id).join("events.ndjson")).unwrap();
        assert_eq!(copied, events);
    }
    let nothing =
        fails(&["export", "--data-dir", "/nowhere/at/all", "--to", copy.to_str().unwrap()]);
    assert!(nothing.contains("there are no sessions"), "{nothing}");
    std::fs::remove_dir_all(&tree).unwrap();
    world.restart();
    // Another session's folder is written after the rebuild has started; wait until this one is
    // complete.
    let file = tree.join(&id).join("events.ndjson");
    let rebuilt = async || std::fs::read_to_string(&file).unwrap_or_default() == events;
    until("the tree is rebuilt", rebuilt).await;
}
