//! A client of the terminal protocol.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Only a broken test takes this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Terminal {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    ids: u64,
    /// Notifications that were not returned yet.
    notes: VecDeque<Value>,
}

impl Terminal {
    /// A connection that has sent nothing yet.
    pub(crate) async fn connect(socket: &Path) -> Self {
        let (reader, writer) = UnixStream::connect(socket).await.unwrap().into_split();
        Self { reader: BufReader::new(reader), writer, ids: 0, notes: VecDeque::new() }
    }

    /// An initialized connection.
    pub(crate) async fn ready(socket: &Path) -> Self {
        let mut terminal = Self::connect(socket).await;
        terminal.initialize(json!(["streaming", "blocks"])).await;
        terminal
    }

    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({ "name": "test", "version": "0.1.0" });
        let params = json!({
            "protocol_version": "1.0.0",
            "client_info": client,
            "terminal_size": { "cols": 80, "rows": 24 },
            "capabilities": capabilities,
        });
        self.request("initialize", params).await.unwrap()
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        let note = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(&note.to_string()).await;
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.ids += 1;
        let id = json!(self.ids);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request.to_string()).await;
        loop {
            let message = self.message().await.expect("an answer");
            match message.get("id") {
                Some(of) if *of == id => return outcome(message),
                Some(_) => panic!("unexpected response {message}"),
                None => self.notes.push_back(message),
            }
        }
    }

    /// Sends a query whose script is the model's answer; returns its id.
    pub(crate) async fn query(&mut self, workspace: &Path, script: Value) -> String {
        let answer = self.query_with(workspace, script, json!({})).await.unwrap();
        assert_eq!(answer["status"], "processing");
        answer["query_id"].as_str().unwrap().into()
    }

    pub(crate) async fn query_with(
        &mut self,
        workspace: &Path,
        script: Value,
        options: Value,
    ) -> Result<Value, Value> {
        let message = format!("go {{{{script: {script}}}}}");
        let context = json!({ "cwd": workspace });
        let params = json!({ "message": message, "context": context, "options": options });
        self.request("agent.query", params).await
    }

    /// The next notification.
    pub(crate) async fn note(&mut self) -> Value {
        match self.notes.pop_front() {
            Some(note) => note,
            None => self.message().await.expect("a notification arrives"),
        }
    }

    /// Everything up to and including a notification.
    pub(crate) async fn until(&mut self, method: &str) -> Vec<Value> {
        let mut notes = Vec::new();
        loop {
            let note = self.note().await;
            let found = note["method"] == method;
            assert!(found || note["method"] != "stream.complete", "no {method} in {notes:#?}");
            notes.push(note);
            if found {
                return notes;
            }
        }
    }

    /// The next message; `None` at the end.
    pub(crate) async fn message(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = tokio::time::timeout(ANSWER_TIMEOUT, self.reader.read_line(&mut line)).await;
        match read.expect("nothing happened for too long") {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).expect(&line)),
        }
    }
}

fn outcome(mut message: Value) -> Result<Value, Value> {
    if message.get("error").is_some() {
        Err(message["error"].take())
    } else {
        Ok(message["result"].take())
    }
}

/// The text of an answer, from single and batched tokens.
pub(crate) fn text(notes: &[Value]) -> String {
    let token = |token: &Value| token["token"].as_str().unwrap().to_owned();
    let of = |note: &Value| match note["method"].as_str().unwrap() {
        "stream.token" => token(&note["params"]),
        "stream.tokens" => note["params"]["tokens"].as_array().unwrap().iter().map(token).collect(),
        _ => String::new(),
    };
    notes.iter().map(of).collect()
}

/// The methods of some notifications, without repeats in a row.
pub(crate) fn methods(notes: &[Value]) -> Vec<String> {
    let mut methods: Vec<String> =
        notes.iter().map(|note| note["method"].as_str().unwrap().into()).collect();
    methods.dedup();
    methods
}

/// The parameters of the notifications of a method.
pub(crate) fn of<'a>(notes: &'a [Value], method: &str) -> Vec<&'a Value> {
    notes.iter().filter(|note| note["method"] == method).map(|note| &note["params"]).collect()
}
