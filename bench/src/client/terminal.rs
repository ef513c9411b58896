//! A client of the terminal protocol.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::Turn;
use crate::child::Child;
use crate::clock::{self, ms};
use crate::received::{ReceivedAnswer, TERMINAL};
use crate::script::Script;

/// A connection like a terminal's.
#[derive(Debug)]
pub(crate) struct Terminal {
    stream: BufReader<UnixStream>,
    requests: u64,
    workspace: Value,
}

impl Terminal {
    /// Connects and initializes; returns the time for both.
    pub(crate) async fn open(daemon: &Child, workspace: &Path) -> Result<(Self, f64)> {
        let socket = daemon.listener("terminal")?;
        let began = clock::now();
        let stream = BufReader::new(UnixStream::connect(socket).await?);
        let workspace = json!(workspace);
        let mut terminal = Self { stream, requests: 0, workspace };
        let hello = json!({
            "protocol_version": "1.0.0",
            "client_info": { "name": "bench", "version": "1" },
            "capabilities": ["streaming", "blocks", "tool_approval"],
        });
        terminal.send("initialize", &hello).await?;
        let (at, answer) = terminal.answer().await?;
        answer.get("result").with_context(|| answer.to_string())?;
        Ok((terminal, ms(began, at)))
    }

    /// Sends a message; returns the time until the query is accepted.
    pub(crate) async fn query(&mut self, script: Script) -> Result<f64> {
        let params = self.question(script);
        let sent = clock::now();
        self.send("agent.query", &params).await?;
        let (at, answer) = self.answer().await?;
        answer.get("result").with_context(|| answer.to_string())?;
        Ok(ms(sent, at))
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let params = self.question(script);
        let sent = clock::now();
        self.send("agent.query", &params).await?;
        let seen = self.seen().await?;
        Ok(Turn { sent, seen })
    }

    /// Reads until a turn has ended.
    pub(crate) async fn seen(&mut self) -> Result<ReceivedAnswer> {
        let mut seen = ReceivedAnswer::new(&TERMINAL);
        let mut line = Vec::new();
        while !seen.is_over() {
            line.clear();
            if self.stream.read_until(b'\n', &mut line).await? == 0 {
                bail!("the connection was closed");
            }
            seen.frame(&line);
        }
        Ok(seen)
    }

    /// Sends a request.
    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.requests += 1;
        let frame =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        Ok(self.stream.get_mut().write_all(format!("{frame}\n").as_bytes()).await?)
    }

    /// Reads until a notification; returns it and its arrival time.
    pub(crate) async fn until(&mut self, method: &str) -> Result<(u64, Value)> {
        loop {
            let (at, message) = self.next().await?;
            if message["method"] == method {
                return Ok((at, message));
            }
        }
    }

    fn question(&self, script: Script) -> Value {
        json!({ "message": script.to_string(), "context": { "cwd": self.workspace } })
    }

    async fn next(&mut self) -> Result<(u64, Value)> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await? == 0 {
            bail!("the connection was closed");
        }
        Ok((clock::now(), serde_json::from_str(&line)?))
    }

    /// The answer to the last request.
    async fn answer(&mut self) -> Result<(u64, Value)> {
        loop {
            let (at, message) = self.next().await?;
            if message["id"] == self.requests {
                return Ok((at, message));
            }
        }
    }
}
