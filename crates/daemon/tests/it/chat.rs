//! Tests of `quintet chat -p`, run as in a script.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::daemon::{World, quintet};
use crate::terminal::{WITH_APPROVALS, shell};

/// Sends a message whose script is the model's answer.
async fn run_script(world: &World, script: Value, flags: &[&str]) -> Output {
    run(world, &format!("go {{{{script: {script}}}}}"), flags).await
}

pub(crate) async fn run(world: &World, question: &str, flags: &[&str]) -> Output {
    let socket = world.terminal();
    let fixed = ["chat", "--socket", socket.to_str().unwrap(), "-p", question];
    let mut command = quintet(&[&fixed, flags].concat());
    command.stdin(Stdio::null()).current_dir(world.workspace());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn the_answer_is_printed() {
    let world = World::start(WITH_APPROVALS).await;
    let output = run_script(&world, json!([{ "deltas": ["It is ", "blue."] }]), &[]).await;
    assert_eq!((text(&output.stdout).trim_end(), output.status.code()), ("It is blue.", Some(0)));
    let failed = run_script(&world, json!([{ "status": 400 }]), &[]).await;
    assert_eq!(failed.status.code(), Some(1));
}

#[tokio::test]
async fn tool_calls_are_refused_without_yes() {
    let world = World::start(WITH_APPROVALS).await;
    let script = json!([{ "tools": [shell("touch made")] }, { "text": "done" }]);
    let refused = run_script(&world, script.clone(), &[]).await;
    assert!(text(&refused.stderr).contains("refused"), "{}", text(&refused.stderr));
    assert!(!world.workspace().join("made").exists());
    let made = run_script(&world, script, &["--yes", "--json"]).await;
    let lines: Vec<Value> =
        text(&made.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["method"] == "tool.complete"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["method"], "stream.complete");
    assert!(world.workspace().join("made").exists());
}

#[test]
fn the_error_without_a_daemon_says_what_to_start() {
    let alone = quintet(&["chat", "--socket", "/nowhere/x.sock", "-p", "hi"]);
    let output = { alone }.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/nowhere/x.sock"), "{}", text(&output.stderr));
}
