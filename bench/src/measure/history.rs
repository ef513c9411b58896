//! What a turn costs in a session with a past, against the first turns of a session.
//!
//! No model limits the prompt here, so it grows with the past; a proxy that is given a prompt of the
//! same length shows how much of the growth is the prompt's own.

use std::time::Duration;

use anyhow::Result;

use super::Plan;
use super::cost::{Cost, middle, turns};
use super::long::{FAST, Past};
use crate::client::Client;
use crate::rig::Rig;
use crate::table::Row;

const TURNS: usize = 50;
const WARM_UP: usize = 10;
/// A past that takes longer to make is measured as far as it is.
const FILL_LIMIT: Duration = Duration::from_secs(110);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon_with("history", &FAST).await?;
    let mut past = Past::create(rig, &daemon).await?;
    daemon.stop().await?;
    let mut rows = Vec::new();
    for wanted in [1000, plan.turns.unwrap_or(plan.rounds(10_000, 0))] {
        if wanted < past.turns {
            continue;
        }
        let daemon = rig.daemon_with("history", &FAST).await?;
        past.grow(rig, &daemon, wanted, FILL_LIMIT).await?;
        daemon.stop().await?;
        rows.extend(after(rig, plan, &mut past).await?);
    }
    Ok(rows)
}

/// The figures of the session as it is now, next to those of new ones on the same daemon.
async fn after(rig: &Rig, plan: &Plan, past: &mut Past) -> Result<Vec<Row>> {
    let count = past.turns;
    let daemon = rig.daemon("history").await?;
    daemon.settle().await?;
    past.look(&daemon).await?;
    let mut old = past.open(&daemon).await?;
    let pause = Duration::ZERO;
    let prompt = turns(rig, &mut old, WARM_UP, pause).await?[WARM_UP - 1].prompt;
    turns(rig, &mut rig.session(&daemon).await?, WARM_UP, pause).await?;
    let mut proxy = Client::proxy_with_prompt(rig.proxy.address, prompt).await?;
    turns(rig, &mut proxy, WARM_UP, pause).await?;
    let (mut first, mut later, mut by_proxy) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds(3, 1) {
        first.extend(turns(rig, &mut rig.session(&daemon).await?, TURNS, pause).await?);
        later.extend(turns(rig, &mut old, TURNS, pause).await?);
        by_proxy.extend(turns(rig, &mut proxy, TURNS, pause).await?);
        past.turns += TURNS;
    }
    past.turns += WARM_UP;
    daemon.stop().await?;
    let row = |what: &str, figure: fn(&Cost) -> f64| {
        Row::new(format!("{what} after {count} turns, against the first {TURNS}, ms"))
            .against(middle(&first, figure))
            .quintet(middle(&later, figure))
    };
    let kb = prompt / 1000;
    let proxy = middle(&by_proxy, |cost| cost.overhead);
    Ok(vec![
        row("overhead of a turn", |cost| cost.overhead)
            .aim("<= 1.2x")
            .note(format!("prompt of {kb} kB; a proxy needs {proxy:.2} ms for one as long")),
        row("model is asked", |cost| cost.asked),
    ])
}
