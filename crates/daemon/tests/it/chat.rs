//! `quintet chat -p`, run as a script would.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::daemon::{World, quintet};
use crate::terminal::{ASKING, shell};

/// Asks a question whose script is the model's answer.
async fn ask(world: &World, script: Value, flags: &[&str]) -> Output {
    ask_plainly(world, &format!("go {{{{script: {script}}}}}"), flags).await
}

pub(crate) async fn ask_plainly(world: &World, question: &str, flags: &[&str]) -> Output {
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
async fn a_script_gets_its_answer() {
    let world = World::start(ASKING).await;
    let said = ask(&world, json!([{ "deltas": ["It is ", "blue."] }]), &[]).await;
    assert_eq!((text(&said.stdout).trim_end(), said.status.code()), ("It is blue.", Some(0)));
    let failed = ask(&world, json!([{ "status": 400 }]), &[]).await;
    assert_eq!(failed.status.code(), Some(1));
}

#[tokio::test]
async fn tools_are_refused_unless_the_script_says_yes() {
    let world = World::start(ASKING).await;
    let script = json!([{ "tools": [shell("touch made")] }, { "text": "done" }]);
    let refused = ask(&world, script.clone(), &[]).await;
    assert!(text(&refused.stderr).contains("refused"), "{}", text(&refused.stderr));
    assert!(!world.workspace().join("made").exists());
    let made = ask(&world, script, &["--yes", "--json"]).await;
    let lines: Vec<Value> =
        text(&made.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().any(|line| line["method"] == "tool.complete"), "{lines:?}");
    assert_eq!(lines.last().unwrap()["method"], "stream.complete");
    assert!(world.workspace().join("made").exists());
}

#[test]
fn without_a_daemon_it_says_how_to_get_one() {
    let alone = quintet(&["chat", "--socket", "/nowhere/x.sock", "-p", "hi"]);
    let said = { alone }.stdin(Stdio::null()).output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(text(&said.stderr).contains("/nowhere/x.sock"), "{}", text(&said.stderr));
}
