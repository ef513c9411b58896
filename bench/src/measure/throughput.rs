//! Throughput and cost of one long answer.

use anyhow::{Context, Result};

use super::Plan;
use crate::child::Child;
use crate::client::Client;
use crate::clock::{median, ms};
use crate::rig::{Rig, cpu_of};
use crate::table::Row;

const DELTAS: usize = 100_000;

#[derive(Default)]
struct Samples {
    per_second: Vec<f64>,
    cpu: Vec<f64>,
    events: Vec<f64>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("throughput").await?;
    let (mut by_proxy, mut by_quintet) = (Samples::default(), Samples::default());
    for _ in 0..plan.rounds(5, 2) {
        let client = Client::proxy(rig.proxy.address).await?;
        by_proxy.take(rig, &rig.proxy, client).await?;
        by_quintet.take(rig, &daemon, rig.session(&daemon).await?).await?;
    }
    daemon.stop().await?;
    let events = median(&by_quintet.events);
    Ok(vec![
        Row::new("deltas per second, one session")
            .proxy(median(&by_proxy.per_second))
            .quintet(median(&by_quintet.per_second))
            .aim(">= 0.6x")
            .note(format!("in {events:.0} events")),
        Row::new("CPU for 100,000 deltas, s")
            .proxy(median(&by_proxy.cpu))
            .quintet(median(&by_quintet.cpu))
            .aim("<= 0.8 s"),
    ])
}

impl Samples {
    async fn take(&mut self, rig: &Rig, child: &Child, mut client: Client) -> Result<()> {
        let (turn, cpu) = cpu_of(child, client.turn(rig.script(DELTAS, 0))).await?;
        let last = *turn.seen.arrivals.last().context("no text")?;
        self.per_second.push(DELTAS as f64 / ms(turn.sent, last) * 1000.0);
        self.cpu.push(cpu / 1000.0);
        self.events.push(turn.seen.events as f64);
        Ok(())
    }
}
