//! A kill with a thousand open turns, alone and among ten times as many sessions: the time until
//! all model calls are repeated.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Plan;
use crate::child::Child;
use crate::client::{create, send};
use crate::clock::ms;
use crate::http::Conn;
use crate::rig::Rig;
use crate::script::Script;
use crate::table::Row;

const CONNECTIONS: usize = 20;
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    recover(rig, "recovery", plan.rounds(1000, 200), 0).await
}

/// The same among sessions with one finished turn each.
pub(super) async fn among_many(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    recover(rig, "restart", plan.rounds(1000, 200), plan.rounds(9000, 1000)).await
}

async fn recover(rig: &Rig, data: &str, open: usize, quiet: usize) -> Result<Vec<Row>> {
    let daemon = rig.daemon(data).await?;
    rig.log().await?;
    let began = Instant::now();
    turns(rig, &daemon, quiet, rig.script(1, 0)).await?;
    daemon.settle().await?;
    turns(rig, &daemon, open, Script { hang: true, ..rig.script(0, 0) }).await?;
    asked(rig, quiet + open).await.context("before the kill")?;
    let filled = began.elapsed().as_secs_f64();
    daemon.kill().await?;
    rig.log().await?;
    let daemon = rig.daemon(data).await?;
    let last = asked(rig, open).await.context("after the kill")?;
    let (ready, memory) = (daemon.ready.as_secs_f64() * 1000.0, daemon.rss_mb()?);
    let (took, cpu) = (ms(daemon.started, last), daemon.cpu_ms()?);
    daemon.kill().await?;
    let note = format!("{cpu:.0} ms of CPU; {memory:.0} MB with all open; made in {filled:.0} s");
    let all = open + quiet;
    Ok(vec![
        Row::new(format!("kill -9 with {open} open turns of {all}: start -> ready, ms"))
            .quintet(ready),
        Row::new(format!("kill -9 with {open} open turns of {all}: start -> all asked again, ms"))
            .quintet(took)
            .note(note),
    ])
}

/// Runs a turn in each of this many new sessions.
async fn turns(rig: &Rig, daemon: &Child, sessions: usize, script: Script) -> Result<()> {
    let mut hands = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let scripts: Vec<Script> = (0..sessions / CONNECTIONS)
            .map(|_| Script { id: rig.script(0, 0).id, ..script })
            .collect();
        let (address, workspace) = (daemon.address, rig.workspace());
        hands.spawn(async move {
            let mut conn = Conn::open(address).await?;
            for script in scripts {
                let id = create(&mut conn, &workspace).await?;
                send(&mut conn, &id, script).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(())
}

/// Waits for this many model calls; returns the time of the last one.
async fn asked(rig: &Rig, times: usize) -> Result<u64> {
    let wait = async {
        loop {
            let count = rig.count().await?;
            if count.calls >= times {
                return Ok(count.last);
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    match timeout(RECOVERY_TIMEOUT, wait).await {
        Ok(last) => last,
        Err(_) => {
            let calls = rig.count().await?.calls;
            anyhow::bail!("the model was asked {calls} times instead of {times}")
        }
    }
}
