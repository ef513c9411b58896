//! The end of the daemon: in order, in time, and at once if somebody insists.

use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::daemon::{World, appears, until};

/// The one child of a process.
fn child(parent: Pid) -> Pid {
    let tasks = PathBuf::from(format!("/proc/{parent}/task"));
    let children = std::fs::read_dir(tasks).unwrap().map(|task| {
        let list = task.unwrap().path().join("children");
        std::fs::read_to_string(list).unwrap_or_default()
    });
    let children: String = children.collect();
    let mut children = children.split_whitespace();
    let child = children.next().expect("a supervisor").parse().unwrap();
    assert_eq!(children.next(), None);
    Pid::from_raw(child).unwrap()
}

#[tokio::test]
async fn another_signal_ends_a_shutdown_that_hangs() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let tool = json!({ "name": "shell", "args": { "command": ": > ready; sleep 600" } });
    client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    appears(&world.workspace().join("ready")).await;
    // The end of the command is waited for, and the process that would end it is stopped.
    let supervisor = child(world.pid());
    kill_process(supervisor, Signal::STOP).unwrap();
    kill_process(world.pid(), Signal::TERM).unwrap();
    let address = world.base().strip_prefix("http://").unwrap().to_owned();
    let refused = async || tokio::net::TcpStream::connect(&address).await.is_err();
    until("nobody new is let in", refused).await;
    let ended = world.signal(Signal::INT);
    // The supervisor may have been ended with the daemon.
    let _ = kill_process(supervisor, Signal::KILL);
    assert_eq!(ended.code(), Some(130));
    // What it was doing is known, and ends.
    world.restart();
    assert_eq!(world.integrity(), "ok");
}
