//! A client of the protocol of editors: a real `quintet acp` and its pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::{World, quintet, spawn};

/// Only a broken test takes this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Everything that was received, in order.
    pub(crate) seen: Vec<Value>,
    taken: usize,
    next_id: u64,
}

impl Editor {
    /// Starts `quintet acp` with the configuration of a world.
    pub(crate) fn start(world: &World) -> Self {
        Self::start_on(&world.home.path().join("quintet.toml"))
    }

    pub(crate) fn start_on(config: &Path) -> Self {
        let mut child = spawn(
            quintet(&["acp", "--config", config.to_str().unwrap()])
                .env("QUINTET_LOG", "warn")
                .current_dir(config.parent().unwrap())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        let (sender, lines) = channel();
        let stdout = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("nothing else on stdout");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, seen: Vec::new(), taken: 0, next_id: 0 }
    }

    /// Starts and initializes with these capabilities.
    pub(crate) fn ready(world: &World, capabilities: Value) -> Self {
        let mut editor = Self::start(world);
        editor.initialize(capabilities);
        editor
    }

    pub(crate) fn initialize(&mut self, capabilities: Value) -> Value {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        self.call("initialize", params).unwrap()
    }

    pub(crate) fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request; returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub(crate) fn reply(&mut self, request: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// The next matching message; those before it stay in `seen`.
    pub(crate) fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Value {
        loop {
            while self.taken < self.seen.len() {
                self.taken += 1;
                if matches(&self.seen[self.taken - 1]) {
                    return self.seen[self.taken - 1].clone();
                }
            }
            match self.lines.recv_timeout(ANSWER_TIMEOUT) {
                Ok(message) => self.seen.push(message),
                Err(error) => panic!("{error} after {:#?}", self.seen),
            }
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.until(|message| message["id"] == id && message.get("method").is_none());
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The next request of the daemon with this method.
    pub(crate) fn incoming(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method && message.get("id").is_some())
    }

    pub(crate) fn new_session(&mut self, world: &World) -> String {
        let params = json!({ "cwd": world.workspace(), "mcpServers": [] });
        let opened = self.call("session/new", params).unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn load(&mut self, world: &World, session: &str) -> Result<Value, Value> {
        let params = json!({ "sessionId": session, "cwd": world.workspace(), "mcpServers": [] });
        self.call("session/load", params)
    }

    /// Sends a prompt whose script is the model's answer; returns the id of the request.
    pub(crate) fn script(&mut self, session: &str, script: Value) -> u64 {
        // A nested script is that of a subagent.
        let script = script.to_string().replace("{{script:", "\\u007b{script:");
        self.prompt(session, &format!("go {{{{script: {script}}}}}"))
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// The updates of a kind that were received.
    pub(crate) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).cloned().collect()
    }

    /// The text of all updates of a kind.
    pub(crate) fn text(&self, kind: &str) -> String {
        let updates = self.updates(kind);
        updates.iter().filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes standard input; returns the remaining messages, and whether the program succeeded.
    pub(crate) fn close(&mut self) -> (Vec<Value>, bool) {
        drop(self.stdin.take());
        let ended = self.child.wait().unwrap();
        (self.lines.iter().collect(), ended.success())
    }

    pub(crate) fn wait(&mut self) {
        self.child.wait().unwrap();
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
