//! The delay between the model writing a delta and the client receiving it.

use std::collections::HashMap;

use anyhow::{Context, Result};

use super::Plan;
use crate::client::{Client, Turn};
use crate::clock::{median, ms, percentile};
use crate::rig::Rig;
use crate::table::Row;

const DELTAS: usize = 1000;
const GAP_US: u64 = 1000;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("latency").await?;
    let mut proxy = Client::proxy(rig.proxy.address).await?;
    let mut session = rig.session(&daemon).await?;
    let (mut by_proxy, mut by_quintet) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(5, 2) {
        by_proxy.push(turn(rig, &mut proxy).await?);
        by_quintet.push(turn(rig, &mut session).await?);
    }
    daemon.stop().await?;
    let middle = |share: f64, rounds: &[Vec<f64>]| {
        median(&rounds.iter().map(|round| percentile(round, share)).collect::<Vec<_>>())
    };
    let row = |what: &str, share: f64| {
        Row::new(what).proxy(middle(share, &by_proxy)).quintet(middle(share, &by_quintet))
    };
    Ok(vec![
        row("latency added to a delta, median, ms", 0.5).aim("<= 1.3x"),
        row("latency added to a delta, 99 of 100, ms", 0.99),
    ])
}

async fn turn(rig: &Rig, client: &mut Client) -> Result<Vec<f64>> {
    let script = rig.script(DELTAS, GAP_US);
    let turn = client.turn(script).await?;
    added(rig, &[(script.id, turn)]).await
}

/// The delay of every delta of some turns.
pub(super) async fn added(rig: &Rig, turns: &[(u64, Turn)]) -> Result<Vec<f64>> {
    let log = rig.log().await?;
    let written: HashMap<u64, &[u64]> =
        log.iter().map(|call| (call.id, call.writes.as_slice())).collect();
    let mut delays = Vec::new();
    for (id, turn) in turns {
        let writes = written.get(id).context("the model was not asked")?;
        let both = writes.iter().zip(&turn.seen.arrivals);
        delays.extend(both.map(|(written, seen)| ms(*written, *seen)));
    }
    Ok(delays)
}
