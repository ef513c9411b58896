//! A client of the agent-server protocol.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::Turn;
use super::websocket::WebSocket;
use crate::child::Child;
use crate::received::AGENT;
use crate::script::Script;

/// A connection that only receives events of its own session: it leaves `jsonrpc` out.
#[derive(Debug)]
pub(crate) struct Agent {
    socket: WebSocket,
    requests: u64,
    /// The session.
    pub(crate) session: String,
}

impl Agent {
    /// Connects and creates a session.
    pub(crate) async fn open(daemon: &Child, workspace: &Path) -> Result<Self> {
        let socket = WebSocket::open(daemon.listener("agent")?).await?;
        let mut agent = Self { socket, requests: 0, session: String::new() };
        let params = json!({ "workingDirectory": workspace });
        let created = agent.call("session.create", &params).await?;
        agent.session = created["sessionId"].as_str().context("no sessionId")?.to_owned();
        Ok(agent)
    }

    /// A request and its answer.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let (id, request) = self.request(method, params);
        self.socket.send(request).await?;
        loop {
            let frame = self.socket.next().await?;
            // Answers have an id at the front of their members; notifications have none.
            let mut answer: Value = serde_json::from_str(&frame)?;
            if answer["id"] == id.as_str() {
                ensure!(answer["success"] == true, "{method}: {}", answer["error"]);
                return Ok(answer["result"].take());
            }
        }
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let params = json!({ "sessionId": self.session, "content": script.to_string() });
        let (_, request) = self.request("agent.message", &params);
        self.socket.turn(request, &AGENT).await
    }

    fn request(&mut self, method: &str, params: &Value) -> (String, String) {
        self.requests += 1;
        let id = self.requests.to_string();
        let request = json!({ "id": id, "method": method, "params": params }).to_string();
        (id, request)
    }
}
