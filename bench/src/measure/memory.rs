//! Memory: idle, with many loaded sessions, after they have hibernated, and after a restart with
//! many on disk.

use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Plan;
use crate::child::Child;
use crate::client::create;
use crate::http::Conn;
use crate::rig::Rig;
use crate::table::Row;

/// Number of sessions that are created concurrently.
const CONNECTIONS: usize = 32;
const SETTLE_DELAY: Duration = Duration::from_secs(2);
/// All protocols, as in a daemon without a configuration.
const ALL: [&str; 3] =
    ["listen.jarvis=127.0.0.1:0", "listen.agent=127.0.0.1:0", "listen.agent_health=127.0.0.1:0"];
/// Sessions hibernate after half a minute; then memory is read until it stays constant.
const HIBERNATION_DELAY: Duration = Duration::from_secs(40);
const HIBERNATION_TIMEOUT: Duration = Duration::from_secs(100);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let (proxy, daemon) = (rig.another_proxy().await?, rig.daemon("memory").await?);
    let whole = rig.daemon_with("memory-all", &ALL).await?;
    sleep(SETTLE_DELAY).await;
    whole.settle().await?;
    let idle = |daemon: &Child| {
        anyhow::Ok(Row::new("idle RSS, MB").proxy(proxy.rss_mb()?).quintet(daemon.rss_mb()?))
    };
    let mut rows = vec![
        idle(&daemon)?
            .aim("<= 15 MB")
            .note("VmRSS, 2 s after the start; no desktop, no agent server"),
        idle(&whole)?.aim("<= 15 MB").note("with every protocol on"),
    ];
    proxy.stop().await?;
    daemon.stop().await?;
    whole.stop().await?;
    let mut there = 0;
    for sessions in [1000, if plan.quick { 2000 } else { 10_000 }] {
        let daemon = rig.daemon("memory").await?;
        let per_second = fill(rig, &daemon, sessions - there).await?;
        there = sessions;
        let awake = daemon.rss_mb()?;
        daemon.stop().await?;
        let daemon = rig.daemon("memory").await?;
        let ready = daemon.ready.as_secs_f64() * 1000.0;
        sleep(SETTLE_DELAY).await;
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

/// Creates many sessions in one daemon and waits until they hibernate.
pub(super) async fn hibernated(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let sessions = plan.rounds(10_000, 2000);
    let daemon = rig.daemon("hibernated").await?;
    daemon.settle().await?;
    let before = daemon.rss_mb()?;
    let per_second = fill(rig, &daemon, sessions).await?;
    let (awake, began) = (daemon.rss_mb()?, Instant::now());
    let (mut last, mut same) = (awake, 0);
    while began.elapsed() < HIBERNATION_DELAY || same < 5 && began.elapsed() < HIBERNATION_TIMEOUT {
        sleep(SETTLE_DELAY).await;
        let now = daemon.rss_mb()?;
        same = if (now - last).abs() < 0.5 { same + 1 } else { 0 };
        last = now;
    }
    daemon.stop().await?;
    let waited = began.elapsed().as_secs_f64();
    Ok(vec![
        Row::new(format!("RSS, {sessions} sessions created and hibernated, MB"))
            .against(before)
            .quintet(last)
            .aim("<= 40 MB")
            .note(format!(
                "against before; {awake:.0} MB just after ({per_second:.0}/s), {waited:.0} s later"
            )),
    ])
}

async fn fill(rig: &Rig, daemon: &Child, sessions: usize) -> Result<f64> {
    let began = Instant::now();
    let mut hands = JoinSet::new();
    for hand in 0..CONNECTIONS {
        let (address, workspace) = (daemon.address, rig.workspace());
        let share = sessions / CONNECTIONS + usize::from(hand < sessions % CONNECTIONS);
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
