//! Tests of `quintet worker` and `quintet runs`, with a daemon, a model and a terminal.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::acp::attach::daemon as serving_process;
use crate::daemon::{World, appears, quintet, spawn, until};
use crate::windie::Guest;
use crate::windie::runs::{ControlPlane, MANY_RUNS};

/// A worker that works in a folder of its own.
struct WorkerProcess {
    child: Child,
}

impl WorkerProcess {
    fn start(world: &World, id: &str, more: &[&str]) -> Self {
        let (url, dir) = (world.windie(), folder(world));
        std::fs::create_dir_all(&dir).unwrap();
        let mut command = worker(url, id);
        command.args(["--dir", dir.to_str().unwrap()]).args(more);
        Self { child: spawn(&mut command) }
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn worker(url: &str, id: &str) -> Command {
    let mut command =
        quintet(&["worker", "--url", url, "--key", "r-key", "--workspace", "w", "--id", id]);
    command.args(["--interval-ms", "50", "--set", "sandbox.mode=off"]);
    command.env("QUINTET_LOG", "warn");
    command
}

fn folder(world: &World) -> PathBuf {
    world.data_dir().parent().unwrap().join("machine")
}

fn script(steps: Value) -> String {
    format!("go {{{{script: {steps}}}}}")
}

fn shell(command: &str) -> Value {
    json!({ "name": "run_shell_command", "args": { "command": command } })
}

async fn over(plane: &ControlPlane, run: &str) -> String {
    until("the run has ended", async || {
        matches!(plane.status(run).await.as_str(), "completed" | "failed" | "stopped")
    })
    .await;
    plane.status(run).await
}

/// Runs `quintet runs …`; returns its output and whether it succeeded.
async fn runs(world: &World, arguments: &[&str]) -> (String, bool) {
    let mut command = quintet(&["runs"]);
    command.args(arguments).args(["--url", world.windie(), "--key", "r-key"]);
    command.stderr(Stdio::inherit());
    // The model answers on this test's own thread, which must not be blocked.
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

#[tokio::test]
async fn a_worker_executes_runs_as_sessions() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let _worker = WorkerProcess::start(&world, "x", &["--jobs", "2"]);
    let steps = json!([
        { "text": "I look. ", "tools": [shell("echo hello > out.txt"), json!({ "name": "shell", "args": { "command": "cat out.txt" } })] },
        { "tools": [json!({ "name": "read_file", "args": { "path": "out.txt" } })] },
        { "text": "done" },
    ]);
    let one = plane.create("w", &script(steps)).await;
    let two = plane.create("w", &script(json!([{ "text": "quick" }]))).await;
    assert_eq!(over(&plane, &one).await, "completed");
    assert_eq!(over(&plane, &two).await, "completed");
    let wrote = std::fs::read_to_string(folder(&world).join("out.txt")).unwrap();
    assert_eq!(wrote, "hello\n");
    let timeline = plane.timeline(&one).await;
    let place = |kind: &str| timeline.iter().position(|known| known == kind).expect(kind);
    let order = ["run-created", "run-worker-assigned", "run-dispatched", "query-accepted"];
    assert_eq!(timeline[..4], order);
    assert!(place("tool-bundle") < place("tool-call"), "{timeline:?}");
    assert!(place("tool-call") < place("streaming-complete"), "{timeline:?}");
    assert_eq!(timeline.last().unwrap(), "streaming-complete");
    // The model received the results of the commands, and the run is a session like any other.
    assert!(world.model.calls().iter().any(|call| call.to_string().contains("hello")));
    let (_, view) = plane.get(&format!("/{one}")).await;
    assert_eq!(view["conversation_ref"], format!("run-{one}"));
    let (_, page) = plane.get(&format!("/{one}/events")).await;
    let session = page["events"][3]["payload"]["session_id"].as_str().unwrap().to_owned();
    let shown = world.client().session(&session).await;
    assert!(shown["messages"].to_string().contains("go "), "{shown}");
}

#[tokio::test]
async fn files_of_a_run_are_in_the_folder_of_its_worker() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nnot much of a picture";
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let (code, uploaded) = Guest::stranger(&world).hand_in(Some("image/png"), PNG).await;
    assert_eq!(code, 200, "{uploaded}");
    let files = json!([
        { "artifact_id": uploaded["artifact_id"], "filename": "../shot.png" },
        { "artifact_id": "nothing.png" },
    ]);
    let body = json!({
        "workspace_id": "w", "query": script(json!([{ "text": "seen" }])), "files": files,
    });
    let (_, created) = plane.post("/", body).await;
    let _worker = WorkerProcess::start(&world, "x", &[]);
    let run = created["run"]["run_id"].as_str().unwrap();
    assert_eq!(over(&plane, run).await, "completed");
    assert_eq!(std::fs::read(folder(&world).join("shot.png")).unwrap(), PNG);
    let asked = world.model.calls()[0].to_string();
    assert!(asked.contains("The file shot.png belongs to the task."), "{asked}");
    assert!(asked.contains("nothing.png belongs to the task but cannot be had"), "{asked}");
}

#[tokio::test]
async fn a_killed_worker_continues_its_run() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let mut first = WorkerProcess::start(&world, "x", &[]);
    let steps = json!([
        { "tools": [shell("echo once >> count; touch began; sleep 600")] },
        { "text": "so be it" },
    ]);
    let run = plane.create("w", &script(steps)).await;
    appears(&folder(&world).join("began")).await;
    first.kill();
    assert_eq!(plane.status(&run).await, "running");
    let _again = WorkerProcess::start(&world, "x", &[]);
    assert_eq!(over(&plane, &run).await, "completed");
    let count = std::fs::read_to_string(folder(&world).join("count")).unwrap();
    assert_eq!(count, "once\n", "a command that may have run is not run again");
    let timeline = plane.timeline(&run).await;
    for kind in ["run-dispatched", "tool-call", "streaming-complete"] {
        assert_eq!(timeline.iter().filter(|known| *known == kind).count(), 1, "{timeline:?}");
    }
}

#[tokio::test]
async fn a_run_survives_the_daemon() {
    let mut world = World::start(MANY_RUNS).await;
    // The worker knows the daemon by its address, which must stay the same.
    let listed = "windie = \"127.0.0.1:0\"";
    let address = world.windie().trim_start_matches("http://").to_owned();
    world.reconfigure(listed, &format!("windie = {address:?}"));
    let plane = ControlPlane::of(&world);
    let _worker = WorkerProcess::start(&world, "x", &[]);
    let steps = json!([
        { "tools": [shell("echo once >> count; touch began; sleep 1")] },
        { "text": "done" },
    ]);
    let run = plane.create("w", &script(steps)).await;
    appears(&folder(&world).join("began")).await;
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    assert_eq!(over(&plane, &run).await, "completed");
    let count = std::fs::read_to_string(folder(&world).join("count")).unwrap();
    assert_eq!(count, "once\n");
    let timeline = plane.timeline(&run).await;
    assert_eq!(timeline.last().unwrap(), "streaming-complete");
}

#[tokio::test]
async fn a_person_pauses_takes_over_and_stops() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let steps = json!([{ "tools": [shell("touch first")] }, { "text": "done" }]);
    let has =
        async |run: &str, kind: &str| plane.timeline(run).await.iter().any(|known| known == kind);
    // While a person is in control nothing runs.
    let run = plane.create("w", &script(steps)).await;
    assert!(runs(&world, &["mode", &run, "human_override"]).await.1);
    let _worker = WorkerProcess::start(&world, "x", &[]);
    until("a call waits", async || has(&run, "run-tool-held").await).await;
    assert!(!folder(&world).join("first").exists());
    assert_eq!(plane.status(&run).await, "running");
    // Shared control: calls that change something wait for a person.
    assert!(runs(&world, &["mode", &run, "shared_control"]).await.1);
    until("the worker obeys", async || {
        let applied = plane.timeline(&run).await;
        applied.iter().filter(|kind| *kind == "run-control-applied").count() >= 2
    })
    .await;
    assert!(!folder(&world).join("first").exists());
    assert!(runs(&world, &["resume", &run]).await.1);
    assert_eq!(over(&plane, &run).await, "completed");
    // The model may have been asked to repeat the call, and had nothing more to say.
    let held = plane.timeline(&run).await.contains(&"run-tool-held".to_owned());
    assert!(held);
    // A pause holds the next call; a stop ends the turn.
    let long = json!([{ "tools": [shell("touch third; sleep 600")] }, { "text": "never" }]);
    let run = plane.create("w", &script(long)).await;
    appears(&folder(&world).join("third")).await;
    let (line, ok) = runs(&world, &["pause", &run]).await;
    assert!(ok && line.contains("paused"), "{line}");
    let (line, ok) = runs(&world, &["stop", &run]).await;
    assert!(ok && line.contains("stopped"), "{line}");
    until("the turn is over", async || has(&run, "streaming-complete").await).await;
    assert_eq!(plane.status(&run).await, "stopped");
}

#[tokio::test]
async fn a_terminal_starts_follows_and_lists_runs() {
    let world = World::start(MANY_RUNS).await;
    let _worker = WorkerProcess::start(&world, "x", &[]);
    let task = script(json!([{ "deltas": ["Hel", "lo"] }]));
    let (shown, ok) = runs(&world, &["start", "--workspace", "w", "--follow", &task]).await;
    assert!(ok && shown.contains("Hello"), "{shown}");
    assert!(shown.contains("run-dispatched") && shown.contains("streaming-complete"), "{shown}");
    let (listed, _) = runs(&world, &["list", "--status", "completed"]).await;
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let (events, ok) = runs(&world, &["follow", id, "--json"]).await;
    let first: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert!(ok && first["event_type"] == "run-created", "{events}");
    let (_, ok) = runs(&world, &["stop", id]).await;
    assert!(!ok, "the run has ended");
    let (_, ok) = runs(&world, &["follow", "nothing"]).await;
    assert!(!ok);
    let (id, _) = runs(&world, &["start", "--workspace", "elsewhere", "wait for ever"]).await;
    let (stopped, ok) = runs(&world, &["stop", "--all"]).await;
    assert!(ok && stopped == id, "{stopped} {id}");
    let refused = quintet(&["worker", "--url", world.windie(), "--key", "wrong"]).output().unwrap();
    let output = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && output.contains("Invalid runs API key"), "{output}");
}

#[tokio::test]
async fn a_worker_starts_its_own_daemon() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let home = TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = home.path().join("quintet.toml");
    let listen = ["harness", "jarvis", "agent", "agent_health", "terminal", "console", "openai"]
        .map(|name| format!("{name} = \"off\"\n"))
        .concat();
    let text = format!(
        "data_dir = {:?}\ndefault_model = \"demo/demo\"\n[listen]\n{listen}windie = \"127.0.0.1:{port}\"\n",
        home.path().join("data"),
    );
    std::fs::write(&config, text).unwrap();
    let more = ["--daemon", "own", "--config", config.to_str().unwrap()];
    let worker = WorkerProcess::start(&world, "own", &more);
    let run = plane.create("w", "count to 3").await;
    assert_eq!(over(&plane, &run).await, "completed");
    assert_eq!(world.model.calls(), Vec::<Value>::new(), "the other daemon's model was called");
    // The daemon outlives the worker that started it.
    drop(worker);
    let pid = serving_process(home.path());
    kill_process(pid, Signal::TERM).unwrap();
    until("the daemon ends", async || test_kill_process(pid).is_err()).await;
}
