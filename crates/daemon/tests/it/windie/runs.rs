//! The control plane of runs as dashboards and workers meet it.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use serde_json::{Value, json};

use super::{AUTH, Guest, answer, detail};
use crate::daemon::{World, until};

/// A control plane with room for many runs.
pub(crate) const MANY_RUNS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n[windie]\n\
    runs_key = \"r-key\"\nmax_active_runs_per_workspace = 1000\n";
/// The same; a worker may be silent for four seconds, and a run loses two workers at most.
const HASTY: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n[windie]\n\
    runs_key = \"r-key\"\nmax_active_runs_per_workspace = 1000\nruns_lease_seconds = 4\n\
    runs_max_losses = 2\n";

/// Requests that are under way together; each has a connection of its own.
const AT_ONCE: usize = 60;

/// A client with the key.
pub(crate) struct ControlPlane(Guest);

impl ControlPlane {
    pub(crate) fn of(world: &World) -> Self {
        Self(Guest::stranger(world))
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> (u16, Value) {
        let request = self.0.request(method, &format!("/api/runs{path}"));
        let request = request.header("x-windie-runs-key", "r-key").body(body);
        answer(request.send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.ask(Method::POST, path, body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, String::new()).await
    }

    /// Creates a run; gives its id.
    pub(crate) async fn create(&self, workspace: &str, query: &str) -> String {
        let body = json!({ "workspace_id": workspace, "query": query, "requested_by": "me" });
        let (status, created) = self.post("/", body).await;
        assert_eq!((status, &created["events"][0]["seq"]), (200, &json!(1)), "{created}");
        created["run"]["run_id"].as_str().unwrap().to_owned()
    }

    /// A worker's heartbeat; gives what the worker is to do.
    async fn poll(&self, workspace: &str, worker: &str, status: &str) -> Value {
        let (code, polled) = self.post("/workers/heartbeat", beat(workspace, worker, status)).await;
        assert_eq!(code, 200, "{polled}");
        polled
    }

    async fn dispatch(&self, run: &str, worker: &str, turn: &str) -> (u16, Value) {
        let body = json!({ "worker_id": worker, "user_id": "u", "turn_ref": turn });
        self.post(&format!("/{run}/worker-dispatched"), body).await
    }

    async fn event(&self, run: &str, kind: &str, payload: Value) -> (u16, Value) {
        let body = json!({ "event_type": kind, "payload": payload });
        self.post(&format!("/{run}/events"), body).await
    }

    async fn control(&self, run: &str, action: &str) -> (u16, Value) {
        self.post(&format!("/{run}/control"), json!({ "action": action })).await
    }

    pub(crate) async fn status(&self, run: &str) -> String {
        let (code, view) = self.get(&format!("/{run}")).await;
        assert_eq!(code, 200, "{view}");
        view["status"].as_str().unwrap().to_owned()
    }

    /// The types of a run's events.
    pub(crate) async fn timeline(&self, run: &str) -> Vec<String> {
        let (code, page) = self.get(&format!("/{run}/events?limit=1000")).await;
        assert_eq!(code, 200, "{page}");
        let events = page["events"].as_array().unwrap().iter();
        events.map(|event| event["event_type"].as_str().unwrap().to_owned()).collect()
    }
}

fn beat(workspace: &str, worker: &str, status: &str) -> Value {
    json!({
        "workspace_id": workspace, "worker_id": worker, "vm_id": "vm", "user_id": "u",
        "session_id": "s", "status": status, "metadata": { "n": 1 },
    })
}

#[tokio::test]
async fn a_run_goes_from_the_queue_to_its_end_across_kills_of_the_daemon() {
    let mut world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let (first, second) = (plane.create("w", "one").await, plane.create("w", "two").await);
    let (code, view) = plane.get(&format!("/{first}")).await;
    assert_eq!((code, &view["status"]), (200, &json!("awaiting_worker")));
    assert_eq!(view["conversation_ref"], format!("run-{first}"));
    assert_eq!((&view["worker"], &view["control_mode"]), (&Value::Null, &json!("agent_only")));
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    let polled = plane.poll("w", "x", "ready").await;
    assert_eq!(polled["assigned_run"]["run_id"], *first);
    assert_eq!(polled["worker"]["metadata"], json!({ "n": 1 }));
    assert_eq!(plane.poll("other", "y", "ready").await["assigned_run"], Value::Null);
    assert_eq!(plane.poll("w", "y", "busy").await["assigned_run"], Value::Null);
    assert_eq!(plane.status(&first).await, "queued");
    let mismatch = (404, detail("Run not found or worker mismatch"));
    assert_eq!(plane.dispatch(&first, "y", "t1").await, mismatch);
    assert_eq!(plane.dispatch(&second, "y", "t1").await, mismatch);
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    let (code, dispatched) = plane.dispatch(&first, "x", "t1").await;
    assert_eq!((code, &dispatched["run"]["status"]), (200, &json!("running")));
    assert_eq!(dispatched["latest_event"]["event_type"], "run-dispatched");
    assert_eq!(dispatched["run"]["query_message_id"], "t1");
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    let payload = json!({ "payload": { "text": "hi" }, "turn_ref": "t1" });
    assert_eq!(plane.event(&first, "streaming-response", payload.clone()).await.0, 200);
    let (_, done) = plane.event(&first, "streaming-complete", json!({})).await;
    assert_eq!(done["run"]["status"], "completed");
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    assert_eq!(
        plane.timeline(&first).await,
        [
            "run-created",
            "run-worker-assigned",
            "run-dispatched",
            "streaming-response",
            "streaming-complete"
        ]
    );
    let (_, page) = plane.get(&format!("/{first}/events?after_seq=3&limit=1")).await;
    assert_eq!((&page["next_after_seq"], &page["events"][0]["payload"]), (&json!(4), &payload));
    let (_, page) = plane.get(&format!("/{first}/events?after_seq=99")).await;
    assert_eq!((&page["next_after_seq"], &page["events"]), (&json!(99), &json!([])));
    assert_eq!(plane.status(&second).await, "awaiting_worker");
    assert_eq!(world.integrity(), "ok");
}

#[tokio::test]
async fn commands_are_delivered_until_their_effect_is_reported() {
    let mut world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let run = plane.create("w", "one").await;
    plane.poll("w", "x", "ready").await;
    plane.dispatch(&run, "x", "t1").await;
    let (code, paused) = plane.control(&run, "pause").await;
    assert_eq!((code, &paused["run"]["status"]), (200, &json!("paused")));
    let command = paused["latest_event"]["payload"]["command_id"].clone();
    let commands = async |plane: &ControlPlane| {
        plane.poll("w", "x", "running").await["control_commands"].clone()
    };
    let delivered = commands(&plane).await;
    assert_eq!(delivered.as_array().unwrap().len(), 1);
    assert_eq!(
        (&delivered[0]["command_id"], &delivered[0]["action"], &delivered[0]["run_id"]),
        (&command, &json!("pause"), &json!(run))
    );
    assert_eq!(plane.poll("w", "y", "ready").await["control_commands"], json!([]));
    // The answer may be lost, and so may the daemon.
    world.kill();
    world.restart();
    let plane = ControlPlane::of(&world);
    assert_eq!(commands(&plane).await, delivered);
    let applied = json!({ "command_id": command });
    assert_eq!(plane.event(&run, "run-control-applied", applied).await.0, 200);
    assert_eq!(commands(&plane).await, json!([]));
    assert_eq!(plane.status(&run).await, "paused");
    assert_eq!(plane.control(&run, "resume").await.1["run"]["status"], "running");
    let mode = json!({ "action": "set-control-mode", "control_mode": "human_override" });
    let (_, changed) = plane.post(&format!("/{run}/control"), mode).await;
    assert_eq!(changed["run"]["control_mode"], "human_override");
    assert_eq!(plane.control(&run, "stop").await.1["run"]["status"], "stopped");
    assert_eq!(commands(&plane).await.as_array().unwrap().len(), 3);
    // The end of the turn is the effect of the stop; the run stays stopped.
    let (code, late) = plane.event(&run, "streaming-complete", json!({})).await;
    assert_eq!((code, &late["run"]["status"]), (200, &json!("stopped")));
    assert_eq!(commands(&plane).await, json!([]));
    for action in ["pause", "resume", "stop"] {
        let over = (409, detail("Run is already stopped"));
        assert_eq!(plane.control(&run, action).await, over, "{action}");
    }
    assert_eq!(plane.dispatch(&run, "x", "t2").await, (409, detail("Run is already stopped")));
}

#[tokio::test]
async fn a_worker_that_is_silent_loses_its_run_and_comes_too_late() {
    let world = World::start(HASTY).await;
    let plane = ControlPlane::of(&world);
    let run = plane.create("w", "one").await;
    let first = plane.poll("w", "x", "ready").await["assigned_run"].clone();
    assert_eq!((&first["run_id"], &first["assignment"]), (&json!(run), &json!(1)));
    plane.dispatch(&run, "x", "t1").await;
    until("the run is back in the queue", async || plane.status(&run).await == "awaiting_worker")
        .await;
    let mismatch = (404, detail("Run not found or worker mismatch"));
    let late = json!({ "turn_ref": "t1" });
    assert_eq!(plane.event(&run, "streaming-response", late.clone()).await, mismatch);
    assert_eq!(plane.dispatch(&run, "x", "t1").await, mismatch);
    let second = plane.poll("w", "y", "ready").await["assigned_run"].clone();
    assert_eq!((&second["run_id"], &second["assignment"]), (&json!(run), &json!(2)));
    assert_eq!(plane.event(&run, "streaming-complete", late).await, mismatch);
    let stale = json!({ "event_type": "error", "payload": {}, "worker_id": "x", "assignment": 1 });
    assert_eq!(plane.post(&format!("/{run}/events"), stale).await, mismatch);
    let good = json!({ "event_type": "x", "payload": {}, "worker_id": "y", "assignment": 2 });
    assert_eq!(plane.post(&format!("/{run}/events"), good).await.0, 200);
    until("the run fails", async || plane.status(&run).await == "failed").await;
    let (_, page) = plane.get(&format!("/{run}/events")).await;
    let lost: Vec<&Value> = page["events"].as_array().unwrap().iter().collect();
    let lost: Vec<_> =
        lost.iter().filter(|event| event["event_type"] == "run-worker-lost").collect();
    assert_eq!(lost.len(), 2);
    assert_eq!(lost[0]["payload"]["worker_id"], "x");
    assert_eq!(lost[1]["payload"]["status"], "failed");
}

#[tokio::test]
async fn a_worker_that_is_heard_of_keeps_its_run() {
    let world = World::start(HASTY).await;
    let plane = ControlPlane::of(&world);
    let (kept, lost) = (plane.create("w", "one").await, plane.create("w", "two").await);
    plane.poll("w", "x", "ready").await;
    plane.poll("w", "y", "ready").await;
    plane.dispatch(&kept, "x", "t1").await;
    until("the other one is lost", async || {
        plane.poll("w", "x", "busy").await;
        plane.status(&lost).await != "queued"
    })
    .await;
    assert_eq!(plane.status(&kept).await, "running");
    assert!(!plane.timeline(&kept).await.contains(&"run-worker-lost".to_owned()));
}

#[tokio::test]
async fn ten_thousand_heartbeats_at_once_assign_each_run_once() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let created = (0..300).map(|n| {
        let (plane, query) = (&plane, format!("run {n}"));
        async move { plane.create("w", &query).await }
    });
    let created: BTreeSet<String> = stream::iter(created).buffer_unordered(AT_ONCE).collect().await;
    assert_eq!(created.len(), 300);
    let polls = (0..10_000).map(|n| {
        let (plane, worker) = (&plane, format!("worker-{}", n % 700));
        async move { plane.poll("w", &worker, "running").await["assigned_run"]["run_id"].clone() }
    });
    let given: Vec<Value> = stream::iter(polls).buffer_unordered(AT_ONCE).collect().await;
    let assigned: Vec<String> = given.iter().filter_map(Value::as_str).map(String::from).collect();
    let once: BTreeSet<String> = assigned.iter().cloned().collect();
    assert_eq!((assigned.len(), once), (300, created));
}

#[tokio::test]
async fn a_workspace_has_a_limit_and_everything_can_be_stopped() {
    let world = World::start(
        "[approval]\nkinds = []\n[verify]\nauto = false\n[windie]\nruns_key = \"r-key\"\n",
    )
    .await;
    let plane = ControlPlane::of(&world);
    let one = plane.create("w", "one").await;
    let body = json!({ "workspace_id": "w", "query": "two" });
    let full = (409, detail("Active run limit reached for workspace 'w' (1)."));
    assert_eq!(plane.post("/", body.clone()).await, full);
    let other = plane.create("v", "other").await;
    plane.poll("w", "x", "ready").await;
    let (code, stopped) =
        plane.post("/stop-all", json!({ "workspace_id": "w", "requested_by": "operator" })).await;
    let then = json!({ "workspace_id": "w", "stopped_run_ids": [one], "count": 1 });
    assert_eq!((code, stopped), (200, then));
    let (_, page) = plane.get(&format!("/{one}/events?after_seq=2")).await;
    assert_eq!(page["events"][0]["payload"]["bulk"], true);
    assert_eq!(plane.post("/", body).await.0, 200);
    let (_, stopped) = plane.post("/stop-all", json!({ "workspace_id": " " })).await;
    assert_eq!(stopped["count"], 2);
    assert_eq!(plane.status(&other).await, "stopped");
    assert_eq!(plane.post("/stop-all", json!({})).await.1["count"], 0);
    let (_, listed) = plane.get("/?workspace_id=w").await;
    assert_eq!(listed["runs"].as_array().unwrap().len(), 2);
    assert_eq!(listed["runs"][1]["run_id"], *one);
    assert_eq!(plane.get("/?status=active").await.1, json!({ "runs": [] }));
}

#[tokio::test]
async fn keys_open_the_control_plane() {
    let keys = format!("{AUTH}runs_key = \"r-key\"\nruns_control_key = \"c-key\"\n");
    let world = World::start(&keys).await;
    let guest = Guest::register(&world).await;
    let with = async |path: &str, header: &'static str, key: &str| {
        let request = guest.request(Method::POST, path).header(header, key);
        answer(request.body("{}").send().await.unwrap()).await
    };
    let invalid = (401, detail("Invalid runs API key"));
    for path in ["/api/runs/", "/api/runs/r/control", "/api/runs/workers/heartbeat"] {
        assert_eq!(with(path, "x-windie-runs-key", "wrong").await, invalid, "{path}");
        assert_eq!(with(path, "x-windie-runs-control-key", "c-key").await, invalid, "{path}");
        assert_eq!(with(path, "x-windie-runs-key", "r-key").await.0, 422, "{path}");
    }
    let stop = "/api/runs/stop-all";
    let refused = (403, detail("Invalid runs control API key"));
    assert_eq!(with(stop, "x-windie-runs-key", "r-key").await, refused);
    assert_eq!(with(stop, "x-windie-runs-control-key", "c-key").await.0, 200);
    assert_eq!(guest.get("/api/runs/r/events").await, invalid);
    let stranger = Guest::stranger(&world);
    assert_eq!(stranger.get("/api/runs/r").await, (401, detail("Missing install bearer token")));
    let world = World::start("").await;
    let shut = (503, detail("Runs API key is not configured"));
    for path in ["/api/runs/", "/api/runs/r", "/api/runs/r/events"] {
        assert_eq!(Guest::stranger(&world).get(path).await, shut);
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_and_changes_nothing() {
    let world = World::start(MANY_RUNS).await;
    let plane = ControlPlane::of(&world);
    let run = plane.create("w", "one").await;
    let unknown = (404, detail("Run not found"));
    for id in ["nothing", "00000000-0000-4000-8000-000000000000", "a%20b", "%00"] {
        assert_eq!(plane.get(&format!("/{id}")).await, unknown, "{id}");
        assert_eq!(plane.get(&format!("/{id}/events")).await, unknown, "{id}");
        assert_eq!(plane.control(id, "stop").await, unknown, "{id}");
        assert_eq!(plane.event(id, "x", json!({})).await, unknown, "{id}");
        let mismatch = (404, detail("Run not found or worker mismatch"));
        assert_eq!(plane.dispatch(id, "x", "t").await, mismatch, "{id}");
    }
    let wrong = json!({
        "workspace_id": 1, "query": [], "files": 3, "metadata": "x", "action": 1, "event_type": 1,
        "payload": 1, "worker_id": 1, "vm_id": 1, "user_id": 1, "turn_ref": 1, "session_id": 1,
        "agent_id": 1, "status": 1, "requested_by": 1, "control_mode": 1, "source": 1,
    });
    let paths = ["/", "/workers/heartbeat", "/stop-all"].map(String::from);
    let of_run = ["control", "worker-dispatched", "worker-heartbeat", "events"];
    let of_run = of_run.map(|name| format!("/{run}/{name}"));
    for path in paths.iter().chain(&of_run) {
        let (code, said) = plane.post(path, wrong.clone()).await;
        assert_eq!((code, said["detail"].is_array()), (422, true), "{path} {said}");
        for body in ["", "[]", "{", "null", "\"x\""] {
            let (code, _) = plane.ask(Method::POST, path, body.to_owned()).await;
            assert_eq!(code, 422, "{path} {body}");
        }
        let large = json!({ "metadata": { "x": "x".repeat(11 * 1024 * 1024) } });
        assert_eq!(
            plane.post(path, large).await,
            (413, detail("Request body too large")),
            "{path}"
        );
    }
    let (code, said) = plane.control(&run, "set-control-mode").await;
    assert_eq!((code, &said["detail"][0]["loc"]), (422, &json!(["body", "control_mode"])));
    for query in ["after_seq=-1", "limit=0", "limit=1001", "limit=many", "after_seq=1e9"] {
        assert_eq!(plane.get(&format!("/{run}/events?{query}")).await.0, 422, "{query}");
    }
    for query in ["limit=0", "limit=201", "status=dancing"] {
        assert_eq!(plane.get(&format!("/?{query}")).await.0, 422, "{query}");
    }
    assert_eq!(plane.timeline(&run).await, ["run-created"]);
    let (code, bound) = plane
        .post(
            &format!("/{run}/worker-heartbeat"),
            json!({ "worker_id": "x", "vm_id": "v", "session_id": "s" }),
        )
        .await;
    assert_eq!((code, &bound["run"]["status"]), (200, &json!("running")));
    assert_eq!(bound["latest_event"]["event_type"], "worker-heartbeat");
    let foreign = json!({ "worker_id": "y", "vm_id": "v", "session_id": "s" });
    assert_eq!(
        plane.post(&format!("/{run}/worker-heartbeat"), foreign).await,
        (404, detail("Run not found or worker mismatch"))
    );
    plane.event(&run, "error", json!({ "message": "broke" })).await;
    assert_eq!(plane.status(&run).await, "failed");
    assert_eq!(
        plane.event(&run, "streaming-complete", json!({})).await.1["run"]["status"],
        "failed"
    );
    assert_eq!(plane.control(&run, "stop").await, (409, detail("Run is already failed")));
}
