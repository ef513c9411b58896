//! A kill with a thousand turns open: how soon the model is asked again for all of them.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Plan;
use crate::ask::Ask;
use crate::child::Child;
use crate::client::{create, send};
use crate::clock::ms;
use crate::http::Conn;
use crate::rig::Rig;
use crate::table::Row;

const HANDS: usize = 20;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let sessions = if plan.quick { 200 } else { 1000 };
    let daemon = rig.daemon("recovery").await?;
    rig.log().await?;
    open_turns(rig, &daemon, sessions).await?;
    asked(rig, sessions).await.context("before the kill")?;
    daemon.kill().await?;
    rig.log().await?;
    let daemon = rig.daemon("recovery").await?;
    let last = asked(rig, sessions).await.context("after the kill")?;
    let (ready, memory) = (daemon.ready.as_secs_f64() * 1000.0, daemon.rss_mb()?);
    let (took, cpu) = (ms(daemon.started, last), daemon.cpu_ms()?);
    daemon.kill().await?;
    let note =
        format!("ready in {ready:.0} ms; {cpu:.0} ms of CPU; {memory:.0} MB with all of them open");
    Ok(vec![
        Row::new(format!("kill -9 with {sessions} open turns: start -> all asked again, ms"))
            .quintet(took)
            .note(note),
    ])
}

async fn open_turns(rig: &Rig, daemon: &Child, sessions: usize) -> Result<()> {
    let mut hands = JoinSet::new();
    for _ in 0..HANDS {
        let asks: Vec<Ask> =
            (0..sessions / HANDS).map(|_| Ask { hang: true, ..rig.ask(0, 0) }).collect();
        let (address, workspace) = (daemon.address, rig.workspace());
        hands.spawn(async move {
            let mut conn = Conn::open(address).await?;
            for ask in asks {
                let id = create(&mut conn, &workspace).await?;
                send(&mut conn, &id, ask).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(())
}

/// Waits until the model was asked so often; gives when it was asked last.
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
    match timeout(PATIENCE, wait).await {
        Ok(last) => last,
        Err(_) => {
            let calls = rig.count().await?.calls;
            anyhow::bail!("the model was asked {calls} times instead of {times}")
        }
    }
}
