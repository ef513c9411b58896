//! The cost of a turn with a short answer, without the model's own time.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use crate::client::{Client, Turn};
use crate::clock::{median, ms};
use crate::model::Call;
use crate::rig::Rig;

/// One turn, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// From the client's request until the model has its first byte.
    pub(super) asked: f64,
    /// From the client's request until the client has the first text.
    pub(super) text: f64,
    /// From the client's request until the client has the end of the turn, without the time between
    /// the model reading the request and writing the end of its answer.
    pub(super) overhead: f64,
    /// Bytes of the model's request.
    pub(super) prompt: usize,
}

/// Runs turns one after the other, with a pause before each.
pub(super) async fn turns(
    rig: &Rig,
    client: &mut Client,
    count: usize,
    pause: Duration,
) -> Result<Vec<Cost>> {
    let mut turns = Vec::with_capacity(count);
    for _ in 0..count {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let script = rig.script(1, 0);
        turns.push((script.id, client.turn(script).await?));
    }
    let log = rig.log().await?;
    let calls: HashMap<u64, &Call> = log.iter().map(|call| (call.id, call)).collect();
    let cost = |(id, turn): (u64, Turn)| {
        let call = calls.get(&id).context("the model was not asked")?;
        let first = *turn.seen.arrivals.first().context("no text")?;
        Ok(Cost {
            asked: ms(turn.sent, call.arrived),
            text: ms(turn.sent, first),
            overhead: ms(turn.sent, turn.seen.ended) - ms(call.read, call.done),
            prompt: call.bytes,
        })
    };
    turns.into_iter().map(cost).collect()
}

/// The median of one figure of several turns.
pub(super) fn median_of(costs: &[Cost], figure: fn(&Cost) -> f64) -> f64 {
    median(&costs.iter().map(figure).collect::<Vec<_>>())
}
