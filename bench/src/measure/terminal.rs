//! The terminal protocol, compared with the latencies of its specification.

use anyhow::{Context, Result};
use serde_json::json;

use super::Plan;
use super::latency::added;
use crate::client::Turn;
use crate::client::terminal::Terminal;
use crate::clock::{median, ms, percentile};
use crate::rig::Rig;
use crate::script::{Script, Tool};
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
    let mut samples = Samples::default();
    for _ in 0..plan.rounds(20, 5) {
        let (mut terminal, handshake) = Terminal::open(&daemon, &rig.workspace()).await?;
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
    let script = rig.script(DELTAS, GAP_US);
    samples.submission.push(terminal.query(script).await?);
    let seen = terminal.seen().await?;
    seen.check(DELTAS)?;
    samples.token.extend(added(rig, &[(script.id, Turn { sent: 0, seen })]).await?);
    Ok(())
}

async fn approval(rig: &Rig, terminal: &mut Terminal, samples: &mut Samples) -> Result<()> {
    let script = Script { call: Some(Tool::Shell), ..rig.script(0, 0) };
    samples.submission.push(terminal.query(script).await?);
    let asked = terminal.until("tool.request_approval").await?;
    let execution = asked.1["params"]["execution_id"].clone();
    let answer = json!({ "execution_id": execution, "approved": false });
    terminal.send("tool.approve", &answer).await?;
    terminal.until("stream.complete").await?;
    let log = rig.log().await?;
    let call = log.iter().find(|call| call.id == script.id).context("the model was not asked")?;
    samples.approval.push(ms(*call.writes.first().context("no call")?, asked.0));
    Ok(())
}
