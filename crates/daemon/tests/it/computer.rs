//! A client of the computer-use protocol, as strict with the stream as the original one.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, protocol::CloseFrame};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Nothing in these tests takes this long, unless it is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// What the original client counts.
const NUMBERED: [&str; 18] = [
    "query-accepted",
    "llm-thought",
    "streaming-response",
    "streaming-complete",
    "system-prompt",
    "user-message-full",
    "assistant-message-full",
    "tool-schemas",
    "tool-call",
    "tool-bundle",
    "tool-output",
    "web-search-progress",
    "token-count",
    "context-compaction-started",
    "context-compaction-completed",
    "context-compaction-failed",
    "model-history-updated",
    "trace-event",
];

pub(crate) struct Computer {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    sent: u64,
    name: String,
    /// What was last seen of each turn.
    seen: HashMap<String, u64>,
    closed: Option<CloseFrame>,
}

impl Computer {
    /// Connects and says who it is, and no more.
    pub(crate) async fn reach(url: &str, token: Option<&str>, handshake: &Value) -> Self {
        let url = format!("{}/ws", url.replacen("http", "ws", 1));
        let mut request = url.into_client_request().unwrap();
        if let Some(token) = token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.headers_mut().insert("authorization", value);
        }
        let (stream, _) = connect_async(request).await.unwrap();
        let name = format!("c{}", handshake["user_id"].as_str().unwrap_or_default());
        let mut computer = Self { stream, sent: 0, name, seen: HashMap::new(), closed: None };
        computer.say(&handshake.to_string()).await;
        computer
    }

    /// Connects as a user, and hears which tools the daemon has.
    pub(crate) async fn connect(url: &str, user: &str, definition: Value) -> Self {
        let mut handshake = json!({ "type": "handshake", "user_id": user });
        if !definition.is_null() {
            handshake["agent_definition"] = definition;
        }
        let mut computer = Self::reach(url, None, &handshake).await;
        computer.until("remote-tool-catalog").await;
        computer
    }

    /// Goes on as the same client on another connection: it knows what it has seen.
    pub(crate) async fn again(self, url: &str, handshake: &Value) -> Self {
        let (seen, sent) = (self.seen.clone(), self.sent + 1000);
        drop(self);
        let mut next = Self::reach(url, None, handshake).await;
        (next.seen, next.sent) = (seen, sent);
        next
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }

    /// Sends a message; gives its id.
    pub(crate) async fn send(&mut self, kind: &str, payload: Value) -> String {
        self.sent += 1;
        let id = format!("{}_{}", self.name, self.sent);
        let frame = json!({
            "id": id,
            "type": kind,
            "payload": payload,
            "user_id": "whoever",
            "timestamp": "2026-01-01T00:00:00Z",
        });
        self.say(&frame.to_string()).await;
        id
    }

    /// Asks something whose script is the model's answer.
    pub(crate) async fn query(&mut self, conversation: &str, script: Value) -> String {
        let text = format!("go {{{{script: {script}}}}}");
        let payload = json!({ "text": text, "conversation_ref": conversation });
        self.send("query", payload).await
    }

    /// Stops a turn. Like `agent.stop()` of the original it keeps no note of that, and counts on.
    pub(crate) async fn stop(&mut self, conversation: &str, turn: &str) {
        let payload = json!({ "conversation_ref": conversation, "turn_ref": turn });
        self.send("stop-query", payload).await;
    }

    /// Stops everything that it has heard of.
    pub(crate) async fn stop_all(&mut self) {
        self.send("stop-query", json!({})).await;
    }

    /// The next frame that is new; nothing once the other side has closed.
    pub(crate) async fn frame(&mut self) -> Option<Value> {
        loop {
            let frame = self.raw().await?;
            if self.takes(&frame) {
                return Some(frame);
            }
        }
    }

    /// The next frame, whatever its number.
    pub(crate) async fn raw(&mut self) -> Option<Value> {
        loop {
            let next = tokio::time::timeout(ANSWER_TIMEOUT, self.stream.next()).await;
            match next.expect("nothing happened for too long")? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => {
                    self.closed = frame;
                    return None;
                }
                Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Whether a frame is new; one that does not follow on the last is wrong.
    fn takes(&mut self, frame: &Value) -> bool {
        let kind = frame["type"].as_str().unwrap();
        if !NUMBERED.contains(&kind) {
            assert!(frame.get("sequence").is_none(), "{frame}");
            return true;
        }
        // What belongs to no turn is numbered by its conversation, and only a history may.
        let turn = match frame.get("turn_ref") {
            Some(turn) => turn.as_str().expect(kind),
            None => {
                frame["conversation_ref"].as_str().filter(|_| kind.starts_with("model-")).unwrap()
            }
        };
        assert!(frame["conversation_ref"].is_string(), "{frame}");
        let sequence = frame["sequence"].as_u64().expect(kind);
        assert_eq!(frame["event_id"], format!("{turn}-evt-{sequence:06}-{kind}"));
        let last = self.seen.entry(turn.into()).or_default();
        if sequence <= *last {
            return false;
        }
        assert_eq!(sequence, *last + 1, "{frame}");
        *last = sequence;
        true
    }

    /// What came up to and including the first of a kind.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let next = self.frame().await;
            let next = next.unwrap_or_else(|| panic!("it ended after {told:#?}"));
            let done = next["type"] == kind;
            told.push(next);
            if done {
                return told;
            }
        }
    }

    /// A turn from beginning to end.
    pub(crate) async fn turn(&mut self, conversation: &str, script: Value) -> Vec<Value> {
        self.query(conversation, script).await;
        self.until("streaming-complete").await
    }

    /// Why the other side closed.
    pub(crate) async fn close_code(&mut self) -> u16 {
        while self.frame().await.is_some() {}
        self.closed.as_ref().map_or(0, |frame| frame.code.into())
    }
}

/// The types of what came.
pub(crate) fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter().filter_map(|frame| frame["type"].as_str()).collect()
}

/// The first of a kind among what came.
pub(crate) fn first<'a>(told: &'a [Value], kind: &str) -> &'a Value {
    let found = told.iter().find(|frame| frame["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {told:#?}"))
}

/// All text of an answer.
pub(crate) fn text(told: &[Value]) -> String {
    let said = told.iter().filter(|frame| frame["type"] == "streaming-response");
    said.filter_map(|frame| frame["payload"]["text"].as_str()).collect()
}
