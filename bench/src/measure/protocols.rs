//! The same measurements with every protocol: the time until the model call and until the first
//! text, the delay of a delta, throughput, and its CPU time.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Plan;
use super::cost::{Cost, median_of, turns};
use super::latency::added;
use crate::child::Child;
use crate::client::{Client, Protocol};
use crate::clock::{median, ms, percentile};
use crate::rig::Rig;
use crate::table::Row;

/// One figure of a protocol's samples.
type Figure = fn(&Samples) -> f64;

const TURNS: usize = 20;
const DELTAS: usize = 1000;
const GAP_US: u64 = 1000;
const MANY_DELTAS: usize = 100_000;
const SET: [&str; 3] =
    ["listen.jarvis=127.0.0.1:0", "listen.agent=127.0.0.1:0", "listen.openai=127.0.0.1:0"];

/// The measurements of one side.
#[derive(Default)]
struct Samples {
    turns: Vec<Cost>,
    late: Vec<f64>,
    per_second: Vec<f64>,
    /// CPU time of the daemon or the proxy for many deltas, in milliseconds.
    cpu: Vec<f64>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon_with("protocols", &SET).await?;
    let mut by_proxy = Samples::default();
    let mut by_protocol = Protocol::ALL.map(|protocol| (protocol, Samples::default()));
    for _ in 0..plan.rounds(3, 1) {
        let client = Client::proxy(rig.proxy.address).await?;
        by_proxy.take(rig, &rig.proxy, client).await.context("proxy")?;
        for (protocol, samples) in &mut by_protocol {
            let client = Client::connect(*protocol, &daemon, &rig.workspace()).await;
            let name = protocol.name();
            samples.take(rig, &daemon, client.context(name)?).await.context(name)?;
        }
    }
    daemon.stop().await?;
    let figures: [(&str, Figure); 7] = [
        ("client sends -> model is asked, ms", |one| median_of(&one.turns, |cost| cost.asked)),
        ("client sends -> first text, ms", |one| median_of(&one.turns, |cost| cost.text)),
        ("overhead of a turn, ms", |one| median_of(&one.turns, |cost| cost.overhead)),
        ("latency added to a delta, median, ms", |one| percentile(&one.late, 0.5)),
        ("latency added to a delta, 99 of 100, ms", |one| percentile(&one.late, 0.99)),
        ("deltas per second", |one| median(&one.per_second)),
        ("CPU for 100,000 deltas, ms", |one| median(&one.cpu)),
    ];
    let mut rows = Vec::new();
    for (what, figure) in figures {
        for (protocol, samples) in &by_protocol {
            let row = Row::new(format!("{}: {what}", protocol.name()));
            rows.push(row.proxy(figure(&by_proxy)).quintet(figure(samples)));
        }
    }
    Ok(rows)
}

impl Samples {
    /// Uses a new session: a terminal may send at most a hundred requests per second.
    async fn take(&mut self, rig: &Rig, measured: &Child, mut client: Client) -> Result<()> {
        turns(rig, &mut client, TURNS, Duration::ZERO).await?;
        self.turns.extend(turns(rig, &mut client, TURNS, Duration::ZERO).await?);
        let script = rig.script(DELTAS, GAP_US);
        let turn = client.turn(script).await?;
        self.late.extend(added(rig, &[(script.id, turn)]).await?);
        let before = measured.cpu_ms()?;
        let turn = client.turn(rig.script(MANY_DELTAS, 0)).await?;
        self.cpu.push(measured.cpu_ms()? - before);
        let last = *turn.seen.arrivals.last().context("no text")?;
        self.per_second.push(MANY_DELTAS as f64 / ms(turn.sent, last) * 1000.0);
        Ok(())
    }
}
