//! Memory: idle, with many sessions awake, and after a restart with many on disk.

use std::time::Duration;

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Plan;
use crate::child::Child;
use crate::client::create;
use crate::http::Conn;
use crate::rig::Rig;
use crate::table::Row;

/// So many sessions are created at a time.
const HANDS: usize = 32;
const REST: Duration = Duration::from_secs(2);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let (proxy, daemon) = (rig.another_proxy().await?, rig.daemon("memory").await?);
    sleep(REST).await;
    let mut rows = vec![
        Row::new("idle RSS, MB").proxy(proxy.rss_mb()?).quintet(daemon.rss_mb()?).aim("<= 20 MB"),
    ];
    proxy.stop().await?;
    daemon.stop().await?;
    let mut there = 0;
    for sessions in [1000, if plan.quick { 2000 } else { 10_000 }] {
        let daemon = rig.daemon("memory").await?;
        let per_second = fill(rig, &daemon, sessions - there).await?;
        there = sessions;
        let awake = daemon.rss_mb()?;
        daemon.stop().await?;
        let daemon = rig.daemon("memory").await?;
        let ready = daemon.ready.as_secs_f64() * 1000.0;
        sleep(REST).await;
        rows.push(
            Row::new(format!("RSS, {sessions} sessions on disk, MB"))
                .quintet(daemon.rss_mb()?)
                .note(format!(
                    "{awake:.0} MB just after creating them ({per_second:.0}/s); ready in {ready:.0} ms"
                )),
        );
        daemon.stop().await?;
    }
    Ok(rows)
}

async fn fill(rig: &Rig, daemon: &Child, sessions: usize) -> Result<f64> {
    let began = std::time::Instant::now();
    let mut hands = JoinSet::new();
    for hand in 0..HANDS {
        let (address, workspace) = (daemon.address, rig.workspace());
        let share = sessions / HANDS + usize::from(hand < sessions % HANDS);
        hands.spawn(async move {
            let mut conn = Conn::open(address).await?;
            for _ in 0..share {
                create(&mut conn, &workspace).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(done) = hands.join_next().await {
        done??;
    }
    Ok(sessions as f64 / began.elapsed().as_secs_f64())
}
