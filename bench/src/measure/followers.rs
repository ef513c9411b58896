//! A thousand followers of one session.

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use super::Plan;
use crate::client::{Follower, Session};
use crate::clock::{median, ms};
use crate::received::ReceivedAnswer;
use crate::rig::{Rig, cpu_of};
use crate::table::Row;

const FOLLOWERS: usize = 1000;
const DELTAS: usize = 500;
const GAP_US: u64 = 1000;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let (mut behind, mut used, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let daemon = rig.daemon("followers").await?;
    for _ in 0..plan.rounds(3, 1) {
        let mut session = Session::create(daemon.address, &rig.workspace()).await?;
        let mut followers = Vec::with_capacity(FOLLOWERS);
        for _ in 0..FOLLOWERS {
            followers.push(Follower::open(daemon.address, &session.id, 1).await?);
        }
        let script = rig.script(DELTAS, GAP_US);
        let work = async {
            let all = listen(followers);
            session.turn(script).await?;
            all.await
        };
        let (seen, cpu) = cpu_of(&daemon, work).await?;
        let log = rig.log().await?;
        let call =
            log.iter().find(|call| call.id == script.id).context("the model was not asked")?;
        let written = *call.writes.last().context("nothing was written")?;
        let last = seen.iter().filter_map(|seen| seen.arrivals.last()).max();
        behind.push(ms(written, *last.context("no text")?));
        used.push(cpu);
        let count: usize = seen.iter().map(|seen| seen.events).sum();
        events.push(count as f64 / FOLLOWERS as f64);
    }
    daemon.stop().await?;
    Ok(vec![
        Row::new("1,000 followers: last delta -> last client has it, ms")
            .quintet(median(&behind))
            .note(format!("500 deltas, 1 ms apart; {:.0} events each", median(&events))),
        Row::new("1,000 followers: CPU of the answer, ms").quintet(median(&used)),
    ])
}

/// Each follower reads in its own task from now on.
fn listen(followers: Vec<Follower>) -> impl Future<Output = Result<Vec<ReceivedAnswer>>> {
    let mut set = JoinSet::new();
    for mut follower in followers {
        set.spawn(async move {
            let seen = follower.turn().await?;
            seen.check(DELTAS)?;
            Ok::<_, anyhow::Error>(seen)
        });
    }
    async move {
        let mut all = Vec::new();
        while let Some(seen) = set.join_next().await {
            all.push(seen??);
        }
        Ok(all)
    }
}
