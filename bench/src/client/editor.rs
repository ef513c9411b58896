//! A client of the editors' protocol (ACP), on the socket that `quintet acp` copies bytes to.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::Turn;
use crate::child::Child;
use crate::clock;
use crate::received::{EDITOR, ReceivedAnswer};
use crate::script::Script;

/// A connection like an editor's, with one session.
#[derive(Debug)]
pub(crate) struct Editor {
    stream: BufReader<UnixStream>,
    requests: u64,
    session: Value,
}

impl Editor {
    /// Connects, initializes and creates a session.
    pub(crate) async fn open(daemon: &Child, workspace: &Path) -> Result<Self> {
        let stream = BufReader::new(UnixStream::connect(daemon.listener("acp")?).await?);
        let mut editor = Self { stream, requests: 0, session: Value::Null };
        editor.call("initialize", &json!({ "protocolVersion": 1 })).await?;
        let opening = json!({ "cwd": workspace, "mcpServers": [] });
        editor.session = editor.call("session/new", &opening).await?["sessionId"].take();
        Ok(editor)
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let prompt = json!([{ "type": "text", "text": script.to_string() }]);
        let params = json!({ "sessionId": self.session, "prompt": prompt });
        let sent = clock::now();
        self.send("session/prompt", &params).await?;
        let mut seen = ReceivedAnswer::new(&EDITOR);
        let mut line = Vec::new();
        while !seen.is_over() {
            line.clear();
            if self.stream.read_until(b'\n', &mut line).await? == 0 {
                bail!("the connection was closed");
            }
            seen.frame(&line);
        }
        Ok(Turn { sent, seen })
    }

    async fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(method, params).await?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await? == 0 {
                bail!("the connection was closed");
            }
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.requests {
                message.get("result").with_context(|| line.clone())?;
                return Ok(message["result"].take());
            }
        }
    }

    async fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.requests += 1;
        let frame =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        Ok(self.stream.get_mut().write_all(format!("{frame}\n").as_bytes()).await?)
    }
}
