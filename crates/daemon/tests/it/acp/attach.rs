//! Finds the daemon of a data directory, or starts it.

use std::fs::read_to_string;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;

use quintet_testkit::model_server::ModelServer;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::editor::Editor;
use crate::daemon::{quintet, spawn, until};

fn config(home: &Path, model: &ModelServer) -> std::path::PathBuf {
    let file = home.join("quintet.toml");
    let text = format!(
        "data_dir = {:?}\ndefault_model = \"fake/fake\"\n[listen]\nharness = \"off\"\njarvis = \"off\"\nagent = \"off\"\n\
         agent_health = \"off\"\nwindie = \"off\"\nterminal = \"off\"\n\
         [providers.fake]\napi = \"openai-chat\"\nbase_url = \"{}\"\napi_key = \"test\"\n",
        home.join("data")
            .join("with a rather long name, so that the path does not fit a socket address"),
        model.base_url(),
    );
    std::fs::write(&file, text).unwrap();
    file
}

/// The process that serves with the `quintet.toml` of a folder.
pub(crate) fn daemon(home: &Path) -> Pid {
    let socket = home.join("quintet.toml").to_string_lossy().into_owned();
    let found = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = read_to_string(entry.path().join("cmdline")).ok()?;
        (line.contains("serve") && line.contains(&socket)).then_some(pid)
    });
    Pid::from_raw(found.expect("a daemon is running")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_is_started_once_and_outlives_its_editors() {
    let (home, model) = (TempDir::new().unwrap(), ModelServer::start().await.unwrap());
    let file = config(home.path(), &model);
    // Two editors at once.
    let mut editors = [Editor::start_on(&file), Editor::start_on(&file)];
    for editor in &mut editors {
        editor.initialize(json!({}));
    }
    let pid = daemon(home.path());
    let params = json!({ "cwd": home.path(), "mcpServers": [] });
    let opened = editors[0].call("session/new", params).unwrap();
    let session = opened["sessionId"].as_str().unwrap();
    editors[0].prompt(session, "{{script: [{ \"text\": \"half\", \"hang\": true }]}}");
    editors[0].until(|message| message["params"]["update"]["content"]["text"] == "half");
    editors.iter_mut().for_each(Editor::kill);
    model.streaming(1).await;
    let mut editor = Editor::start_on(&file);
    editor.initialize(json!({}));
    assert_eq!(daemon(home.path()), pid, "the same daemon is used");
    let params = json!({ "sessionId": session, "cwd": home.path(), "mcpServers": [] });
    editor.call("session/load", params).unwrap();
    assert_eq!(editor.text("agent_message_chunk"), "half");
    kill_process(pid, Signal::TERM).unwrap();
    editor.wait();
    until("the daemon ends", async || test_kill_process(pid).is_err()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_survives_a_kill_of_the_editors_group() {
    let (home, model) = (TempDir::new().unwrap(), ModelServer::start().await.unwrap());
    let file = config(home.path(), &model);
    let mut command = quintet(&["acp", "--config", file.to_str().unwrap()]);
    let command = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = spawn(command);
    // After the response, the daemon has been started.
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    child.stdin.as_mut().unwrap().write_all(format!("{hello}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let mut editor = Editor::start_on(&file);
    editor.initialize(json!({}));
    let pid = daemon(home.path());
    kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    editor.call("session/list", json!({})).unwrap();
    let (_, success) = editor.close();
    assert!(success);
    assert!(test_kill_process(pid).is_ok());
    kill_process(pid, Signal::TERM).unwrap();
    until("the daemon ends", async || test_kill_process(pid).is_err()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_cannot_start_reports_the_reason() {
    let (home, model) = (TempDir::new().unwrap(), ModelServer::start().await.unwrap());
    let file = config(home.path(), &model);
    let run = |set: &str| {
        let output =
            quintet(&["acp", "--config", file.to_str().unwrap(), "--set", set]).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run("listen.acp=off").contains("listen.acp is \"off\""));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = run(&format!("listen.harness={address}"));
    assert!(
        error.contains("the daemon did not start") && error.contains("listen.harness"),
        "{error}"
    );
}
