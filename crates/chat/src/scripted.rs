//! A daemon for tests that follows a script, on a real socket.

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use crate::Settings;

/// One step of the script.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Wait for a request and answer it.
    Answer(&'static str, Value),
    Refuse(&'static str, &'static str),
    /// Wait for a notification.
    ExpectNotification(&'static str),
    Notify(&'static str, Value),
    /// Send a line unchanged, such as one that is not JSON.
    SendRaw(&'static str),
}

/// The daemon.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) settings: Settings,
    _folder: TempDir,
    tasks: JoinSet<Vec<Value>>,
}

impl Server {
    /// A daemon that accepts one connection per script, one after the other, and closes each at its
    /// end.
    pub(crate) fn play(connections: Vec<Vec<Step>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("openagent-terminal-1.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut received = Vec::new();
            for steps in connections {
                let (stream, _) = listener.accept().await.unwrap();
                Connection::new(stream, &mut received).play(steps).await;
            }
            received
        });
        let settings = Settings {
            runtime: folder.path().to_owned(),
            cwd: "/some/place".into(),
            shell: Some("/bin/sh".into()),
            ..Settings::default()
        };
        Self { settings, _folder: folder, tasks }
    }

    /// All messages that were received, once the script has ended.
    pub(crate) async fn received(mut self) -> Vec<Value> {
        self.tasks.join_next().await.unwrap().unwrap()
    }
}

struct Connection<'a> {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    received: &'a mut Vec<Value>,
}

impl<'a> Connection<'a> {
    fn new(stream: UnixStream, received: &'a mut Vec<Value>) -> Self {
        let (reader, writer) = stream.into_split();
        Self { lines: BufReader::new(reader).lines(), writer, received }
    }

    async fn play(&mut self, steps: Vec<Step>) {
        let models = json!([{ "name": "demo/small", "type": "chat", "loaded": true }]);
        let hello = json!({ "status": "ready", "models": models });
        self.step(Step::Answer("initialize", hello)).await;
        for step in steps {
            self.step(step).await;
        }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Answer(method, result) => {
                let id = self.receive(method).await["id"].clone();
                self.send_line(
                    &json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string(),
                )
                .await;
            }
            Step::Refuse(method, message) => {
                let id = self.receive(method).await["id"].clone();
                let error = json!({ "code": -32000, "message": message });
                self.send_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
                    .await;
            }
            Step::ExpectNotification(method) => drop(self.receive(method).await),
            Step::Notify(method, params) => {
                let notification = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                self.send_line(&notification.to_string()).await;
            }
            Step::SendRaw(text) => self.send_line(text).await,
        }
    }

    async fn receive(&mut self, method: &str) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client sends a message");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["method"], method, "{message}");
        assert_eq!(message["jsonrpc"], "2.0");
        self.received.push(message.clone());
        message
    }

    async fn send_line(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
}

/// A token of the answer to `q-1` at this offset.
pub(crate) fn token(text: &str, offset: usize) -> Step {
    let meta = json!({ "type": "text", "offset": offset });
    Step::Notify("stream.token", json!({ "query_id": "q-1", "token": text, "metadata": meta }))
}

pub(crate) fn complete(status: &str) -> Step {
    let figures = json!({ "total_tokens": 12, "tokens_per_second": 6.0, "duration_ms": 2000 });
    let params = json!({ "query_id": "q-1", "status": status, "metadata": figures });
    Step::Notify("stream.complete", params)
}

pub(crate) fn accept() -> Step {
    let result = json!({ "query_id": "q-1", "status": "processing", "session_id": "session-1" });
    Step::Answer("agent.query", result)
}

/// A session that is opened, with `q-1` still running or not.
pub(crate) fn load(running: bool) -> Step {
    let open = if running { json!([{ "query_id": "q-1" }]) } else { json!([]) };
    let messages = json!([
        { "role": "user", "content": "what was asked" },
        { "role": "assistant", "content": "what was **answered**" },
    ]);
    let result = json!({
        "loaded": true, "session_id": "session-1", "messages": messages, "running_queries": open,
    });
    Step::Answer("session.load", result)
}

pub(crate) fn request_write_approval() -> Step {
    Step::Notify(
        "tool.request_approval",
        json!({
            "execution_id": "exec-1",
            "query_id": "q-1",
            "tool": { "name": "write_file", "description": "write_file src/main.rs" },
            "preview": {
                "type": "diff",
                "content": "--- a/src/main.rs\n+++ b/src/main.rs\n@@ -1 +1 @@\n-fn old() {}\n+fn new() {}",
            },
            "risk_assessment": {
                "level": "medium", "reasons": ["Modifies existing file"], "reversible": true,
            },
            "timeout": 30,
        }),
    )
}
