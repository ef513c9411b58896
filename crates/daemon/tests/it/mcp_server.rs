//! The MCP server, over HTTP and on stdio: sessions as tools.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use quintet_testkit::model_server::ModelServer;
use reqwest::Response;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::daemon::{quintet, serve, spawn, until};

const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";
const WITH_APPROVALS: &str = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";

/// A daemon that serves MCP.
struct Daemon {
    child: Child,
    ready: Value,
    config: PathBuf,
    home: TempDir,
    http: reqwest::Client,
    _model: ModelServer,
}

impl Daemon {
    async fn start(extra: &str) -> Self {
        let model = ModelServer::start().await.unwrap();
        let home = TempDir::new().unwrap();
        std::fs::create_dir(home.path().join("workspace")).unwrap();
        let config = home.path().join("quintet.toml");
        let text = format!(
            "data_dir = {:?}\ndefault_model = \"fake/fake\"\n[listen]\nharness = \"127.0.0.1:0\"\njarvis = \"off\"\n\
             agent = \"off\"\nagent_health = \"off\"\nwindie = \"off\"\nterminal = \"off\"\nmcp = \"127.0.0.1:0\"\n\
             [providers.fake]\napi = \"openai-chat\"\nbase_url = \"{}\"\napi_key = \"k\"\n{extra}",
            home.path().join("data"),
            model.base_url(),
        );
        std::fs::write(&config, text).unwrap();
        let mut command = quintet(&["serve", "--config", config.to_str().unwrap()]);
        let (child, ready) = serve(command.env("QUINTET_LOG", "warn"));
        // Creating a client sets up TLS.
        Client::new("");
        let http = reqwest::Client::new();
        Self { child, ready, config, home, http, _model: model }
    }

    fn workspace(&self) -> PathBuf {
        self.home.path().join("workspace")
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.ready["listeners"]["mcp"].as_str().unwrap())
    }

    fn harness(&self) -> Client {
        Client::new(self.ready["listeners"]["harness"].as_str().unwrap())
    }

    async fn post(&self, body: Value, headers: &[(&str, &str)]) -> Response {
        let mut request = self.http.post(self.url()).body(body.to_string());
        request = request.header("accept", "application/json, text/event-stream");
        let kind = [("content-type", "application/json")];
        let named = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let default_headers = kind.into_iter().filter(|(name, _)| !named(name));
        for (name, value) in default_headers.chain(headers.iter().copied()) {
            request = request.header(name, value);
        }
        request.send().await.unwrap()
    }

    /// Sends a request of the older protocol version.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let response = self.post(body, &[("mcp-protocol-version", "2025-11-25")]).await;
        let status = response.status();
        let text = response.text().await.unwrap();
        assert!(status.is_success(), "{status} {text}");
        serde_json::from_str(&text).expect(&text)
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        result(&reply)
    }

    async fn run(&self, script: Value, wait: u64) -> Value {
        let prompt = format!("go {{{{script: {script}}}}}");
        let workspace = self.workspace();
        self.call("run", json!({ "prompt": prompt, "workspace": workspace, "wait_seconds": wait }))
            .await
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a tool; the text must have the same content.
fn result(reply: &Value) -> Value {
    let result = &reply["result"];
    assert_ne!(result["isError"], true, "{reply}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"]);
    text
}

fn shell(command: &str) -> Value {
    json!({ "tools": [{ "name": "shell", "args": { "command": command } }] })
}

#[tokio::test]
async fn a_task_can_be_run_continued_and_listed() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let tools = daemon.ask("tools/list", json!({})).await;
    let names: Vec<&str> = tools["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["run", "continue", "status", "answer", "cancel", "sessions"]);
    let done = daemon.run(json!([shell("echo hi > made.txt"), { "text": "all done" }]), 120).await;
    assert_eq!((&done["state"], &done["text"]), (&json!("completed"), &json!("all done")));
    assert_eq!(done["questions"], json!([]));
    assert!(daemon.workspace().join("made.txt").exists());
    let session = done["session"].as_str().unwrap();
    let more = json!({ "session": session, "prompt": "go {{script: [{\"text\": \"more\"}]}}" });
    let again = daemon.call("continue", more).await;
    assert_eq!((&again["state"], &again["text"]), (&json!("completed"), &json!("more")));
    assert_ne!(again["turn"], done["turn"]);
    let status =
        daemon.call("status", json!({ "session": session, "cursor": done["cursor"] })).await;
    assert_eq!(status["text"], "more");
    let status =
        daemon.call("status", json!({ "session": session, "cursor": again["cursor"] })).await;
    assert_eq!((&status["text"], &status["state"]), (&json!(""), &json!("completed")));
    let sessions = daemon.call("sessions", json!({})).await;
    assert_eq!(sessions["sessions"][0]["session"], session, "{sessions}");
    assert_eq!(sessions["sessions"][0]["state"], "completed");
}

#[tokio::test]
async fn a_long_turn_can_be_polled_and_cancelled() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let started = daemon.run(json!([{ "text": "half an ans", "hang": true }]), 0).await;
    assert_eq!(started["state"], "running", "{started}");
    let session = started["session"].as_str().unwrap().to_owned();
    let (mut text, mut cursor) =
        (started["text"].as_str().unwrap().to_owned(), started["cursor"].clone());
    until("the text has arrived", async || {
        let status = daemon.call("status", json!({ "session": session, "cursor": cursor })).await;
        text += status["text"].as_str().unwrap();
        cursor = status["cursor"].clone();
        text == "half an ans"
    })
    .await;
    let busy = json!({ "name": "continue", "arguments": { "session": session, "prompt": "x" } });
    let refused = daemon.ask("tools/call", busy).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let ended = daemon.call("cancel", json!({ "session": session })).await;
    assert_eq!(ended["state"], "cancelled", "{ended}");
}

#[tokio::test]
async fn a_question_is_returned_as_data_and_can_be_answered() {
    let daemon = Daemon::start(WITH_APPROVALS).await;
    for (option, state) in [("approve", true), ("deny", false)] {
        let file = daemon.workspace().join(option);
        let report =
            daemon.run(json!([shell(&format!("touch {option}")), { "text": "ok" }]), 120).await;
        assert_eq!(report["state"], "input_required", "{report}");
        let question = &report["questions"][0];
        assert_eq!(question["tool"], "shell");
        assert!(question["preview"].as_str().unwrap().contains("touch"), "{question}");
        assert!(!file.exists());
        let answer = json!({ "session": report["session"], "question": question["id"], "option": option, "wait_seconds": 120 });
        let done = daemon.call("answer", answer.clone()).await;
        assert_eq!(
            (&done["state"], &done["questions"]),
            (&json!("completed"), &json!([])),
            "{done}"
        );
        assert_eq!(file.exists(), state);
        let late = daemon.ask("tools/call", json!({ "name": "answer", "arguments": answer })).await;
        assert_eq!(late["result"]["isError"], true, "{late}");
    }
}

#[tokio::test]
async fn a_session_of_another_protocol_is_listed_and_its_transcript_readable() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let harness = daemon.harness();
    let id = harness.create(&daemon.workspace()).await;
    harness.say(&id, json!([shell("echo inside"), { "text": "from elsewhere" }])).await;
    harness.until_over(&id).await;
    let status = daemon.call("status", json!({ "session": id })).await;
    assert_eq!(
        (&status["text"], &status["state"]),
        (&json!("from elsewhere"), &json!("completed"))
    );
    let listed = daemon.ask("resources/list", json!({})).await;
    let uri = listed["result"]["resources"][0]["uri"].as_str().unwrap().to_owned();
    assert!(uri.contains(&id), "{listed}");
    let read = daemon.ask("resources/read", json!({ "uri": uri })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("from elsewhere") && text.contains("inside"), "{text}");
    let unknown =
        daemon.ask("resources/read", json!({ "uri": "quintet://sessions/x/transcript" })).await;
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    let unknown = json!({ "name": "status", "arguments": { "session": "session_nowhere" } });
    assert_eq!(daemon.ask("tools/call", unknown).await["error"]["code"], -32602);
    let unknown = daemon.ask("tools/call", json!({ "name": "nothing", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[tokio::test]
async fn foreign_origins_and_plain_text_are_refused() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    let origin =
        |origin: &'static str| [("origin", origin), ("mcp-protocol-version", "2025-11-25")];
    let foreign = daemon.post(body.clone(), &origin("https://evil.example")).await;
    assert_eq!(foreign.status(), 403);
    let foreign = daemon.post(body.clone(), &origin("http://127.0.0.1:1")).await;
    assert_eq!(foreign.status(), 403);
    let plain = daemon.post(body.clone(), &[("content-type", "text/plain")]).await;
    assert!(plain.status().is_client_error(), "{}", plain.status());
    let rebound = daemon.post(body, &[("host", "evil.example")]).await;
    assert_eq!(rebound.status(), 403);
}

#[tokio::test]
async fn both_protocol_versions_are_served() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let client = json!({ "name": "t", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let started = daemon.post(body, &[]).await.text().await.unwrap();
    let started: Value = serde_json::from_str(&started).expect(&started);
    assert_eq!(started["result"]["protocolVersion"], "2025-06-18", "{started}");
    assert_eq!(started["result"]["serverInfo"]["name"], "quintet");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": client,
    });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    let response = daemon.post(body, &headers).await;
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success() && text.contains("\"resultType\":\"complete\""), "{status} {text}");
}

/// A client of `quintet mcp` on its standard input and output.
struct StdioClient {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl StdioClient {
    fn start(config: &Path, folder: &Path) -> Self {
        let mut command = quintet(&["mcp", "--config", config.to_str().unwrap()]);
        let command = command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn(command);
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut this = Self { child, stdin, stdout: BufReader::new(stdout) };
        let client = json!({ "name": "t", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let started = this.ask("initialize", params);
        assert_eq!(started["result"]["serverInfo"]["name"], "quintet", "{started}");
        this.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        this
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the server ended");
            let reply: Value = serde_json::from_str(&line).expect(&line);
            if reply["id"] == 7 {
                return reply;
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        result(&self.ask("tools/call", json!({ "name": tool, "arguments": arguments })))
    }
}

impl Drop for StdioClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_stdio_uses_the_running_daemon() {
    let daemon = Daemon::start(NO_APPROVALS).await;
    let folder = daemon.workspace();
    let (session, cursor) = {
        let mut client = StdioClient::start(&daemon.config, &folder);
        let prompt = "go {{script: [{\"tools\": [{\"name\": \"shell\", \"args\": {\"command\": \"pwd\"}}]}, {\"text\": \"done\"}]}}";
        let done = client.call("run", json!({ "prompt": prompt, "wait_seconds": 120 }));
        assert_eq!(
            (&done["state"], &done["text"]),
            (&json!("completed"), &json!("done")),
            "{done}"
        );
        (done["session"].clone(), done["cursor"].clone())
    };
    // The client has disconnected; its session still exists.
    let status = daemon.call("status", json!({ "session": session, "cursor": cursor })).await;
    assert_eq!(status["state"], "completed");
    let harness = daemon.harness();
    let shown = harness.session(session.as_str().unwrap()).await.to_string();
    assert!(shown.contains(&folder.canonicalize().unwrap().display().to_string()), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_stdio_starts_a_daemon_that_keeps_running() {
    let mut daemon = Daemon::start(NO_APPROVALS).await;
    kill_process(Pid::from_child(&daemon.child), Signal::TERM).unwrap();
    daemon.child.wait().unwrap();
    let prompt = json!({ "prompt": "hello", "workspace": daemon.workspace(), "wait_seconds": 120 });
    let session = {
        let mut client = StdioClient::start(&daemon.config, daemon.home.path());
        client.call("run", prompt)["session"].clone()
    };
    let mut client = StdioClient::start(&daemon.config, daemon.home.path());
    let status = client.call("status", json!({ "session": session }));
    assert_eq!(status["text"], "echo: hello");
    let started = started_by(&daemon.config);
    assert_eq!(started.len(), 1, "{started:?}");
    kill_process(started[0], Signal::TERM).unwrap();
    until("the daemon is gone", async || started_by(&daemon.config).is_empty()).await;
}

/// The daemons that serve a configuration.
fn started_by(config: &Path) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<i32>().ok();
    let serves = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("\0serve\0") && line.contains(config.to_str().unwrap())
    };
    let pids = entries.flatten().filter_map(pid).filter(serves);
    pids.filter_map(Pid::from_raw).collect()
}
