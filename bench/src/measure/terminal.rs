//! The terminal protocol next to the latencies that its specification asks for.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::Plan;
use crate::ask::{Ask, DELTA};
use crate::clock::{self, median, ms, percentile};
use crate::rig::Rig;
use crate::table::Row;

const DELTAS: usize = 500;
const GAP_US: u64 = 1000;

#[derive(Default)]
struct Samples {
    handshake: Vec<f64>,
    submission: Vec<f64>,
    token: Vec<f64>,
    approval: Vec<f64>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let set = ["approval.kinds=[\"exec\"]", "approval.on_deny=fail"];
    let daemon = rig.daemon_with("terminal", &set).await?;
    let socket = rig.socket("terminal");
    let mut samples = Samples::default();
    for _ in 0..plan.rounds(20, 5) {
        let (mut terminal, handshake) = Terminal::open(&socket, &rig.workspace()).await?;
        samples.handshake.push(handshake);
        tokens(rig, &mut terminal, &mut samples).await?;
        approval(rig, &mut terminal, &mut samples).await?;
    }
    daemon.stop().await?;
    let row = |what: &str, values: &[f64], aim: &str| {
        let note = format!("99 of 100: {:.2}", percentile(values, 0.99));
        Row::new(format!("terminal: {what}, ms")).quintet(median(values)).aim(aim).note(note)
    };
    Ok(vec![
        row("connect and handshake", &samples.handshake, "< 50"),
        row("query sent -> taken, synced", &samples.submission, "< 10"),
        row("model writes -> token is there", &samples.token, "< 50"),
        row("model calls a tool -> approval is asked for", &samples.approval, "< 100"),
    ])
}

async fn tokens(rig: &Rig, terminal: &mut Terminal, samples: &mut Samples) -> Result<()> {
    let ask = rig.ask(DELTAS, GAP_US);
    samples.submission.push(terminal.query(ask).await?);
    let mut seen = Vec::new();
    loop {
        let (at, message) = terminal.next().await?;
        let params = &message["params"];
        let text: usize = match message["method"].as_str() {
            Some("stream.token") => length(params),
            Some("stream.tokens") => {
                params["tokens"].as_array().map_or(0, |all| all.iter().map(length).sum())
            }
            Some("stream.complete") => break,
            _ => continue,
        };
        seen.extend(std::iter::repeat_n(at, text / DELTA));
    }
    let log = rig.log().await?;
    let written: HashMap<u64, &[u64]> =
        log.iter().map(|call| (call.id, call.writes.as_slice())).collect();
    let writes = written.get(&ask.id).context("the model was not asked")?;
    if seen.len() != writes.len() {
        bail!("{} deltas were written and {} seen", writes.len(), seen.len());
    }
    samples.token.extend(writes.iter().zip(&seen).map(|(written, seen)| ms(*written, *seen)));
    Ok(())
}

async fn approval(rig: &Rig, terminal: &mut Terminal, samples: &mut Samples) -> Result<()> {
    let ask = Ask { call: true, ..rig.ask(0, 0) };
    samples.submission.push(terminal.query(ask).await?);
    let asked = terminal.until("tool.request_approval").await?;
    let execution = asked.1["params"]["execution_id"].clone();
    let answer = json!({ "execution_id": execution, "approved": false });
    terminal.send("tool.approve", &answer).await?;
    terminal.until("stream.complete").await?;
    let log = rig.log().await?;
    let call = log.iter().find(|call| call.id == ask.id).context("the model was not asked")?;
    samples.approval.push(ms(*call.writes.first().context("no call")?, asked.0));
    Ok(())
}

fn length(token: &Value) -> usize {
    token["token"].as_str().map_or(0, str::len)
}

/// A connection as a terminal has it.
struct Terminal {
    stream: BufReader<UnixStream>,
    requests: u64,
    workspace: Value,
}

impl Terminal {
    /// Connects and shakes hands; gives how long both took.
    async fn open(socket: &Path, workspace: &Path) -> Result<(Self, f64)> {
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

    /// Asks; gives how long it took to be told that the query was taken.
    async fn query(&mut self, ask: Ask) -> Result<f64> {
        let context = json!({ "cwd": self.workspace });
        let sent = clock::now();
        self.send("agent.query", &json!({ "message": ask.to_string(), "context": context }))
            .await?;
        let (at, answer) = self.answer().await?;
        answer.get("result").with_context(|| answer.to_string())?;
        Ok(ms(sent, at))
    }

    async fn send(&mut self, method: &str, params: &Value) -> Result<()> {
        self.requests += 1;
        let frame =
            json!({ "jsonrpc": "2.0", "id": self.requests, "method": method, "params": params });
        Ok(self.stream.get_mut().write_all(format!("{frame}\n").as_bytes()).await?)
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

    async fn until(&mut self, method: &str) -> Result<(u64, Value)> {
        loop {
            let (at, message) = self.next().await?;
            if message["method"] == method {
                return Ok((at, message));
            }
        }
    }
}
