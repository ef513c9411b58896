//! A client of the agent-server protocol.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Nothing in these tests takes this long, unless it is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    asked: u64,
    /// What came while somebody waited for something else.
    news: VecDeque<Value>,
}

impl Socket {
    pub(crate) async fn connect(url: &str) -> Self {
        let (stream, _) = connect_async(url).await.unwrap();
        Self { stream, asked: 0, news: VecDeque::new() }
    }

    pub(crate) async fn send(&mut self, text: &str) {
        self.stream.send(Message::text(text)).await.unwrap();
    }

    /// Why the other side closed; what comes before is passed over.
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

    /// Reads until the other side has asked so many times whether somebody is there; answers.
    pub(crate) async fn pinged(&mut self, times: usize) {
        let mut seen = 0;
        while seen < times {
            let next = tokio::time::timeout(ANSWER_TIMEOUT, self.stream.next()).await;
            let next = next.expect("nothing happened for too long").expect("it is open").unwrap();
            seen += usize::from(matches!(next, Message::Ping(_)));
        }
    }

    /// Asks as a client of the original server does, and waits for the answer.
    pub(crate) async fn ask_natively(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, Value> {
        self.asked += 1;
        let id = format!("req_{}", self.asked);
        self.send(&json!({ "id": id, "method": method, "params": params }).to_string()).await;
        loop {
            let frame = self.frame().await.expect("the connection is open");
            if frame["id"] == id.as_str() {
                return match frame["success"].as_bool() {
                    Some(true) => Ok(frame["result"].clone()),
                    _ => Err(frame["error"].clone()),
                };
            }
            self.news.push_back(frame);
        }
    }

    /// The next frame; nothing once the other side has closed.
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

    /// Asks and waits for the answer.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.asked += 1;
        let id = format!("r{}", self.asked);
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
            self.news.push_back(frame);
        }
    }

    pub(crate) async fn create(&mut self, workspace: &Path) -> String {
        let params = json!({ "workingDirectory": workspace });
        let created = self.ask("session.create", params).await.unwrap();
        created["sessionId"].as_str().unwrap().into()
    }

    /// Sends a message whose script is the model's answer.
    pub(crate) async fn say(&mut self, session: &str, script: Value) -> Result<Value, Value> {
        // A script within a script is that of a subagent.
        let script = script.to_string().replace("{{script:", "\\u007b{script:");
        let content = format!("go {{{{script: {script}}}}}");
        self.ask("agent.message", json!({ "sessionId": session, "content": content })).await
    }

    /// What was told up to and including the first that is wanted.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut told = Vec::new();
        loop {
            let next = match self.news.pop_front() {
                Some(news) => news,
                None => self.frame().await.unwrap_or_else(|| panic!("it ended after {told:#?}")),
            };
            let done = wanted(&next);
            told.push(next);
            if done {
                return told;
            }
        }
    }

    /// What was told until a method was called.
    pub(crate) async fn until_told(&mut self, method: &str) -> Vec<Value> {
        self.until(|news| news["method"] == method).await
    }

    /// A turn with this script, from beginning to end.
    pub(crate) async fn turn(&mut self, session: &str, script: Value) -> Vec<Value> {
        self.say(session, script).await.unwrap();
        self.until_told("agent.turn_complete").await
    }

    pub(crate) async fn events(&mut self, session: &str, after: u64) -> Vec<Value> {
        let params = json!({ "sessionId": session, "after": after, "limit": 1000 });
        let page = self.ask("events.list", params).await.unwrap();
        page["events"].as_array().unwrap().clone()
    }
}

/// All text of an answer.
pub(crate) fn text(told: &[Value]) -> String {
    let deltas = told.iter().filter(|news| news["method"] == "agent.text_delta");
    deltas.filter_map(|news| news["params"]["delta"].as_str()).collect()
}

/// The stored events among what was told.
pub(crate) fn stored(told: &[Value]) -> Vec<Value> {
    let new = told.iter().filter(|news| news["method"] == "events.new");
    new.map(|news| news["params"]["event"].clone()).collect()
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}
