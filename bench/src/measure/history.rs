//! The cost of a turn in a session with a long history, compared with the first turns of a session.
//!
//! The model states no context window, so the prompt grows with the history; a proxy with a prompt
//! of the same length shows how much of the growth is due to the prompt. With `--set
//! providers.fake.context_window=32768` the history is compacted as in real use.

use std::time::Duration;

use anyhow::Result;

use super::Plan;
use super::cost::{Cost, median_of, turns};
use super::stored::{FAST, StoredSession};
use crate::client::Client;
use crate::rig::Rig;
use crate::table::Row;

const TURNS: usize = 50;
const WARM_UP: usize = 10;
/// If a history takes longer to create, it is measured at the length it has by then.
const FILL_TIMEOUT: Duration = Duration::from_secs(110);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon_with("history", &FAST).await?;
    let mut session = StoredSession::create(rig, &daemon).await?;
    daemon.stop().await?;
    let mut rows = Vec::new();
    for wanted in [1000, plan.turns.unwrap_or(plan.rounds(10_000, 0))] {
        if wanted < session.turns {
            continue;
        }
        let daemon = rig.daemon_with("history", &FAST).await?;
        session.grow(rig, &daemon, wanted, FILL_TIMEOUT).await?;
        daemon.stop().await?;
        rows.extend(after(rig, plan, &mut session).await?);
    }
    Ok(rows)
}

/// The figures of the session as it is now, compared with new ones on the same daemon.
async fn after(rig: &Rig, plan: &Plan, session: &mut StoredSession) -> Result<Vec<Row>> {
    let count = session.turns;
    let daemon = rig.daemon("history").await?;
    daemon.settle().await?;
    session.fetch(&daemon).await?;
    let mut old = session.open(&daemon).await?;
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
        session.turns += TURNS;
    }
    session.turns += WARM_UP;
    daemon.stop().await?;
    let row = |what: &str, figure: fn(&Cost) -> f64| {
        Row::new(format!("{what} after {count} turns, against the first {TURNS}, ms"))
            .against(median_of(&first, figure))
            .quintet(median_of(&later, figure))
    };
    let kb = prompt / 1000;
    let proxy = median_of(&by_proxy, |cost| cost.overhead);
    Ok(vec![
        row("overhead of a turn", |cost| cost.overhead)
            .aim("<= 1.2x")
            .note(format!("prompt of {kb} kB; a proxy needs {proxy:.2} ms for one as long")),
        row("model is asked", |cost| cost.asked),
    ])
}
