//! Sandboxes that are prepared for the next command, and supervisors that somebody stops or kills.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quintet_kernel::tool::Ending;
use quintet_tools::sandbox::probe;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::bench::{Bench, json as report, text, until};

/// A supervisor of this process.
struct Supervisor {
    pid: Pid,
    scratch: PathBuf,
}

impl Supervisor {
    /// The supervisor that prepared a sandbox for a workspace or runs a command in one, other than this.
    fn of(workspace: &Path, other: Option<Pid>) -> Option<Self> {
        let workspace = workspace.canonicalize().unwrap();
        let me = format!("PPid:\t{}\n", std::process::id());
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let found = processes.into_iter().find_map(|process| {
            let status = std::fs::read_to_string(process.join("status")).ok()?;
            let args = std::fs::read_to_string(process.join("cmdline")).ok()?;
            let is_own = status.contains(&me) && args.contains(workspace.to_str()?);
            let pid = Pid::from_raw(process.file_name()?.to_str()?.parse().ok()?);
            (is_own && pid != other).then_some((pid?, args))
        });
        let (pid, args) = found?;
        let scratch = args.split('\0').skip_while(|arg| *arg != "--scratch").nth(1)?;
        Some(Self { pid, scratch: scratch.into() })
    }
}

/// True if a process has its working directory in a workspace.
fn is_used(workspace: &Path) -> bool {
    let here = workspace.canonicalize().unwrap();
    let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.any(|it| std::fs::read_link(it.path().join("cwd")).is_ok_and(|cwd| cwd == here))
}

async fn run(bench: &Bench, command: &str) -> String {
    let output = bench.run("shell", json!({ "command": command })).await;
    report(&output)["stdout"].as_str().unwrap_or_default().to_owned()
}

/// The supervisor of the command that runs.
async fn running(bench: &Bench) -> Supervisor {
    until("a supervisor", || Supervisor::of(bench.path(), None)).await
}

/// Runs a first command; gives the sandbox that is prepared for the next.
async fn prepared(bench: &Bench, workspace: &Path) -> Supervisor {
    let command = json!({ "command": "until [ -e go ]; do sleep 0.01; done" });
    let first = async {
        let first = until("a supervisor", || Supervisor::of(workspace, None)).await;
        std::fs::write(workspace.join("go"), "").unwrap();
        first.pid
    };
    let (_, first) = tokio::join!(bench.run_in(workspace, "shell", command), first);
    std::fs::remove_file(workspace.join("go")).unwrap();
    until("a prepared sandbox", || Supervisor::of(workspace, Some(first))).await
}

#[tokio::test]
async fn the_next_command_finds_a_sandbox_that_waits() {
    let bench = Bench::new();
    let before = prepared(&bench, bench.path()).await;
    until("the end of its processes", || (!is_used(bench.path())).then_some(())).await;
    // What changed since then is seen, and nothing of the command before is left.
    bench.write("a", "1\n");
    assert_eq!(run(&bench, "cat a; ls /tmp | wc -l; touch $TMPDIR/x").await, "1\n0\n");
    until("its end", || (!before.scratch.exists()).then_some(())).await;
    until("the next one", || Supervisor::of(bench.path(), Some(before.pid))).await;
    assert_eq!(run(&bench, "ls $TMPDIR | wc -l; pwd").await.lines().next(), Some("0"));
}

#[tokio::test]
async fn a_workspace_that_was_replaced_is_not_taken_for_the_old_one() {
    let bench = Bench::new();
    let folder = bench.path().join("work");
    let list = async || {
        let output = bench.run_in(&folder, "shell", json!({ "command": "ls" })).await;
        report(&output)["stdout"].clone()
    };
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("old"), "").unwrap();
    prepared(&bench, &folder).await;
    assert_eq!(list().await, "old\n");
    std::fs::rename(&folder, bench.path().join("away")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("new"), "").unwrap();
    assert_eq!(list().await, "new\n");
}

#[tokio::test]
async fn a_waiting_sandbox_that_was_killed_is_not_used() {
    let bench = Bench::new();
    let supervisor = prepared(&bench, bench.path()).await;
    kill_process(supervisor.pid, Signal::KILL).unwrap();
    until("its death", || {
        let state = std::fs::read_to_string(format!("/proc/{}/status", supervisor.pid)).ok()?;
        state.contains("State:\tZ").then_some(())
    })
    .await;
    assert_eq!(run(&bench, "echo here").await, "here\n");
    until("its folder to be removed", || (!supervisor.scratch.exists()).then_some(())).await;
}

#[tokio::test]
async fn a_stopped_supervisor_does_not_lift_the_time_limit() {
    let bench = Bench::new();
    let command = json!({ "command": "echo ready; sleep 100", "timeout_seconds": 1 });
    let stop = async {
        until("the command", || (bench.heard() == "ready\n").then_some(())).await;
        kill_process(running(&bench).await.pid, Signal::STOP).unwrap();
    };
    let (output, ()) = tokio::join!(bench.run("shell", command), stop);
    assert_eq!(report(&output)["exit_code"], 124, "{}", text(&output));
    until("the end of its processes", || (!is_used(bench.path())).then_some(())).await;
}

#[tokio::test]
async fn a_killed_supervisor_leaves_neither_processes_nor_folders() {
    if probe().landlock.is_none() {
        eprintln!("NOT CHECKED, there is no sandbox here");
        return;
    }
    let bench = Bench::new();
    let kill = async {
        until("the command", || (bench.heard() == "ready\n").then_some(())).await;
        let supervisor = running(&bench).await;
        kill_process(supervisor.pid, Signal::KILL).unwrap();
        supervisor.scratch
    };
    let command = json!({ "command": "echo ready; sleep 100 & sleep 100" });
    let (output, scratch) = tokio::time::timeout(Duration::from_secs(60), async {
        tokio::join!(bench.run("shell", command), kill)
    })
    .await
    .unwrap();
    assert_eq!(output.outcome.ending, Ending::Failed, "{}", text(&output));
    until("the end", || (!is_used(bench.path()) && !scratch.exists()).then_some(())).await;
}
