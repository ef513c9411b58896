//! A client of the OpenAI-compatible API: every message is a streamed chat completion.

use anyhow::Result;
use serde_json::json;

use super::Turn;
use crate::child::Child;
use crate::clock;
use crate::http::Conn;
use crate::received::{OPENAI, ReceivedAnswer};
use crate::script::Script;

/// A connection and the called model: the provider's own, or an agent, which gets a session for
/// each request.
#[derive(Debug)]
pub(crate) struct OpenAi {
    conn: Conn,
    model: &'static str,
}

impl OpenAi {
    /// Connects.
    pub(crate) async fn open(daemon: &Child, model: &'static str) -> Result<Self> {
        Ok(Self { conn: Conn::open(daemon.http("openai")?).await?, model })
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let messages = json!([{ "role": "user", "content": script.to_string() }]);
        let body = json!({ "model": self.model, "messages": messages, "stream": true }).to_string();
        let sent = clock::now();
        self.conn.send("POST", "/v1/chat/completions", &body).await?;
        let mut lines = self.conn.lines().await?;
        let mut seen = ReceivedAnswer::new(&OPENAI);
        while lines.read(&mut self.conn, |line| seen.frame(line)).await? {}
        Ok(Turn { sent, seen })
    }
}
