//! A client of the agent-server protocol.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Only a broken test takes this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    requests: u64,
    /// Frames that arrived while a response was awaited.
    pending: VecDeque<Value>,
}

impl Socket {
    pub(crate) async fn connect(url: &str) -> Self {
        let (stream, _) = connect_async(url).await.unwrap();
        Self { stream, requests: 0, pending: VecDeque::new() }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }

    /// The code of the close frame; frames before it are ignored.
    pub(crate) async fn close_code(&mut self) -> Option<u16> {
        loop {
            let next = tokio::time::timeout(ANSWER_TIMEOUT, self.stream.next()).await;
            match next.expect("nothing happened for too long")? {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Reads until this many pings were received, and answers them.
    pub(crate) async fn pinged(&mut self, times: usize) {
        let mut seen = 0;
        while seen < times {
            let next = tokio::time::timeout(ANSWER_TIMEOUT, self.stream.next()).await;
            let next = next
                .expect("nothing happened for too long")
                .expect("the connection is open")
                .unwrap();
            seen += usize::from(matches!(next, Message::Ping(_)));
        }
    }

    /// Sends a request in the legacy framing, and waits for the response.
    pub(crate) async fn ask_legacy(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.requests += 1;
        let id = format!("req_{}", self.requests);
        self.send(&json!({ "id": id, "method": method, "params": params }).to_string()).await;
        loop {
            let frame = self.frame().await.expect("the connection is open");
            if frame["id"] == id.as_str() {
                return match frame["success"].as_bool() {
                    Some(true) => Ok(frame["result"].clone()),
                    _ => Err(frame["error"].clone()),
                };
            }
            self.pending.push_back(frame);
        }
    }

    /// The next frame; `None` after the server has closed.
    pub(crate) async fn frame(&mut self) -> Option<Value> {
        let next = async {
            loop {
                match self.stream.next().await? {
                    Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                    Ok(Message::Close(_)) | Err(_) => return None,
                    Ok(_) => {}
                }
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, next).await.expect("nothing happened for too long")
    }

    /// Sends a request and waits for the response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.requests += 1;
        let id = format!("r{}", self.requests);
        let frame = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&frame.to_string()).await;
        loop {
            let frame = self.frame().await.expect("the connection is open");
            if frame["id"] == id.as_str() {
                assert_eq!(frame["jsonrpc"], "2.0");
                return match frame.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(frame["result"].clone()),
                };
            }
            self.pending.push_back(frame);
        }
    }

    pub(crate) async fn create(&mut self, workspace: &Path) -> String {
        let params = json!({ "workingDirectory": workspace });
        let created = self.ask("session.create", params).await.unwrap();
        created["sessionId"].as_str().unwrap().into()
    }

    /// Sends a message whose script is the model's answer.
    pub(crate) async fn say(&mut self, session: &str, script: Value) -> Result<Value, Value> {
        // A nested script is that of a subagent.
        let script = script.to_string().replace("{{script:", "\\u007b{script:");
        let content = format!("go {{{{script: {script}}}}}");
        self.ask("agent.message", json!({ "sessionId": session, "content": content })).await
    }

    /// All frames up to and including the first that matches.
    pub(crate) async fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let next = match self.pending.pop_front() {
                Some(frame) => frame,
                None => self.frame().await.unwrap_or_else(|| panic!("it ended after {frames:#?}")),
            };
            let done = matches(&next);
            frames.push(next);
            if done {
                return frames;
            }
        }
    }

    /// All frames up to and including a notification.
    pub(crate) async fn until_notified(&mut self, method: &str) -> Vec<Value> {
        self.until(|frame| frame["method"] == method).await
    }

    /// Runs a turn with this script and returns its frames.
    pub(crate) async fn turn(&mut self, session: &str, script: Value) -> Vec<Value> {
        self.say(session, script).await.unwrap();
        self.until_notified("agent.turn_complete").await
    }

    pub(crate) async fn events(&mut self, session: &str, after: u64) -> Vec<Value> {
        let params = json!({ "sessionId": session, "after": after, "limit": 1000 });
        let page = self.ask("events.list", params).await.unwrap();
        page["events"].as_array().unwrap().clone()
    }
}

/// All text of an answer.
pub(crate) fn text(frames: &[Value]) -> String {
    let deltas = frames.iter().filter(|frame| frame["method"] == "agent.text_delta");
    deltas.filter_map(|frame| frame["params"]["delta"].as_str()).collect()
}

/// The stored events in the frames.
pub(crate) fn stored(frames: &[Value]) -> Vec<Value> {
    let new = frames.iter().filter(|frame| frame["method"] == "events.new");
    new.map(|frame| frame["params"]["event"].clone()).collect()
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}
