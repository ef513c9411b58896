//! Loading a long session after a restart, compared with a short one.
//!
//! Some of its events are turns, the others are switches of its model, which are fast to create.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::Plan;
use super::agent::lengthen;
use super::cost::{median_of, turns};
use super::stored::{FAST, StoredSession};
use crate::child::Child;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

const FILL_TIMEOUT: Duration = Duration::from_secs(30);
const TURNS: usize = 20;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let events = plan.rounds(100_000, 5000);
    let (mut short, mut long) = make(rig, events as u64, plan.rounds(1000, 100)).await?;
    let [mut cold, mut warm, mut small] = [(); 3].map(|()| Vec::new());
    let (mut first, mut next, mut first_small) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds(5, 2) {
        let daemon = restart(rig).await?;
        small.push(short.fetch(&daemon).await?);
        cold.push(long.fetch(&daemon).await?);
        warm.push(long.fetch(&daemon).await?);
        daemon.stop().await?;
        let daemon = restart(rig).await?;
        let pause = Duration::ZERO;
        first_small.extend(turns(rig, &mut short.open(&daemon).await?, 1, pause).await?);
        let mut client = long.open(&daemon).await?;
        first.extend(turns(rig, &mut client, 1, pause).await?);
        next.extend(turns(rig, &mut client, TURNS, pause).await?);
        daemon.stop().await?;
    }
    let warm = median(&warm);
    let next = median_of(&next, |cost| cost.overhead);
    let (count, of_turns) = (long.last, long.turns);
    Ok(vec![
        Row::new(format!("waking a session of {count} events, against a short one, ms"))
            .against(median(&small))
            .quintet(median(&cold))
            .aim("<= 50 ms")
            .note(format!(
                "GET of the session after a restart, {of_turns} turns in it; {warm:.1} ms again"
            )),
        Row::new(format!("first turn of a session of {count} events after a restart, ms"))
            .against(median_of(&first_small, |cost| cost.overhead))
            .quintet(median_of(&first, |cost| cost.overhead))
            .note(format!("overhead, against a short session; {next:.2} ms for the next ones")),
    ])
}

/// Creates a short and a long session.
async fn make(rig: &Rig, events: u64, of_turns: usize) -> Result<(StoredSession, StoredSession)> {
    let mut set = FAST.to_vec();
    set.push("listen.agent=127.0.0.1:0");
    let daemon = rig.daemon_with("wake", &set).await?;
    let mut short = StoredSession::create(rig, &daemon).await?;
    short.grow(rig, &daemon, 1, FILL_TIMEOUT).await?;
    let mut long = StoredSession::create(rig, &daemon).await?;
    long.grow(rig, &daemon, of_turns, FILL_TIMEOUT).await?;
    lengthen(rig, &daemon, &long.id, events.saturating_sub(long.last)).await?;
    long.fetch(&daemon).await?;
    ensure!(long.last >= events, "only {} events are there", long.last);
    daemon.stop().await?;
    Ok((short, long))
}

/// A daemon that has finished its startup work.
async fn restart(rig: &Rig) -> Result<Child> {
    let daemon = rig.daemon("wake").await?;
    daemon.settle().await?;
    // Excludes the one-time cost of the first request.
    rig.session(&daemon).await?.turn(rig.script(1, 0)).await?;
    rig.log().await?;
    Ok(daemon)
}
