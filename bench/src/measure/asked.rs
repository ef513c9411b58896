//! The time from the client's request to the model's request, to the first text at the client, and
//! to the end of the turn.

use std::time::Duration;

use anyhow::Result;

use super::Plan;
use super::cost::{Cost, median_of, turns};
use crate::client::Client;
use crate::rig::Rig;
use crate::table::Row;

const TURNS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// The turns of one side.
#[derive(Default)]
struct Side {
    /// Turns without pauses in between.
    busy: Vec<Cost>,
    /// Turns with a short pause before each.
    rested: Vec<Cost>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("asked").await?;
    let mut proxy = Client::proxy(rig.proxy.address).await?;
    let mut logged = Client::proxy(rig.logged.address).await?;
    let [mut by_proxy, mut by_logged, mut by_quintet] = [(); 3].map(|()| Side::default());
    // The first turns are a warm-up.
    for client in [&mut proxy, &mut logged, &mut rig.session(&daemon).await?] {
        turns(rig, client, TURNS, Duration::ZERO).await?;
    }
    for _ in 0..plan.rounds(10, 3) {
        let mut session = rig.session(&daemon).await?;
        by_proxy.take(rig, &mut proxy).await?;
        by_logged.take(rig, &mut logged).await?;
        by_quintet.take(rig, &mut session).await?;
    }
    daemon.stop().await?;
    let row = |what: &str, other: &[Cost], ours: &[Cost], figure: fn(&Cost) -> f64| {
        Row::new(what).proxy(median_of(other, figure)).quintet(median_of(ours, figure))
    };
    let (proxy, logged, ours) = (&by_proxy, &by_logged, &by_quintet);
    let synced = "against a proxy that syncs a log before it forwards and before the first text";
    Ok(vec![
        row("client sends -> model is asked, ms", &proxy.busy, &ours.busy, |cost| cost.asked)
            .aim("<= 2x proxy")
            .note("each turn right after the last"),
        row(
            "client sends -> model is asked, 5 ms after, ms",
            &proxy.rested,
            &ours.rested,
            |cost| cost.asked,
        )
        .note("everything is asleep by then"),
        row("client sends -> first text, ms", &proxy.busy, &ours.busy, |cost| cost.text)
            .note("one sync of the disk is in it"),
        row("first text, against a logged proxy, ms", &logged.busy, &ours.busy, |cost| cost.text)
            .aim("<= 1.5x")
            .note(synced),
        row(
            "first text, against a logged proxy, 5 ms after, ms",
            &logged.rested,
            &ours.rested,
            |cost| cost.text,
        ),
        row("overhead of a turn, against a logged proxy, ms", &logged.busy, &ours.busy, |cost| {
            cost.overhead
        })
        .note("client sends -> end of the turn, without the model's own time"),
    ])
}

impl Side {
    async fn take(&mut self, rig: &Rig, client: &mut Client) -> Result<()> {
        self.busy.extend(turns(rig, client, TURNS, Duration::ZERO).await?);
        self.rested.extend(turns(rig, client, TURNS, PAUSE).await?);
        Ok(())
    }
}
