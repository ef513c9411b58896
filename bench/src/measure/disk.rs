//! Bytes written to disk for 100,000 deltas at a natural rate.
//!
//! A model writes 200 deltas per second, so that each flush of the daemon every 100 ms has 140
//! bytes of text. Five daemons take a fifth of the deltas each, concurrently, with one session per
//! daemon, so that no two share a sync.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::Plan;
use super::stored::{FAST, StoredSession};
use crate::child::Child;
use crate::client::Client;
use crate::rig::Rig;
use crate::script::DELTA_BYTES;
use crate::table::Row;

const DELTAS: usize = 100_000;
const DAEMONS: usize = 5;
const DELTAS_OF_ANSWER: usize = 1000;
const GAP_US: u64 = 5000;
const FILL_TIMEOUT: Duration = Duration::from_secs(60);
/// Projections of a session are written shortly after it.
const SETTLE_DELAY: Duration = Duration::from_secs(2);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let deltas = plan.rounds(DELTAS, DELTAS / 10);
    let daemon = rig.daemon_with("disk", &FAST).await?;
    let mut session = StoredSession::create(rig, &daemon).await?;
    session.grow(rig, &daemon, 1000, FILL_TIMEOUT).await?;
    daemon.stop().await?;
    let mut streams = Vec::new();
    for n in 0..DAEMONS {
        let fresh = rig.daemon(&format!("disk-fresh-{n}")).await?;
        let client = rig.session(&fresh).await?;
        streams.push((fresh, client));
        let data = format!("disk-old-{n}");
        copy(&rig.data("disk"), &rig.data(&data))?;
        let old = rig.daemon(&data).await?;
        let client = session.open(&old).await?;
        streams.push((old, client));
    }
    let answers = deltas / DAEMONS / DELTAS_OF_ANSWER;
    let written = try_join_all(streams.into_iter().map(|stream| write(rig, stream, answers)));
    let written = written.await?;
    // New and old sessions alternate.
    let sum = |from: usize| written.iter().skip(from).step_by(2).sum::<f64>() / 1e6;
    let (fresh, old, text) = (sum(0), sum(1), (deltas * DELTA_BYTES) as f64 / 1e6);
    let (turns, flush) = (session.turns, 100_000 / GAP_US as usize * DELTA_BYTES);
    let flushes = deltas as f64 * GAP_US as f64 / 1e5;
    let (fresh_flush, old_flush) = (fresh * 1000.0 / flushes, old * 1000.0 / flushes);
    let what = format!("disk written for {deltas} deltas");
    Ok(vec![
        Row::new(format!("{what}, session of {turns} turns, against a new one, MB"))
            .against(fresh)
            .quintet(old)
            .aim("<= 1.2x")
            .note(format!("write_bytes without cancelled ones; 200/s, so {flush} bytes in 100 ms")),
        Row::new(format!("{what}, new session, against the text, MB"))
            .against(text)
            .quintet(fresh)
            .aim("<= 3x")
            .note(format!("{fresh_flush:.1} kB in 100 ms; answers of {DELTAS_OF_ANSWER} deltas")),
        Row::new(format!("{what}, session of {turns} turns, against the text, MB"))
            .against(text)
            .quintet(old)
            .aim("<= 3x")
            .note(format!("{old_flush:.1} kB in 100 ms")),
    ])
}

/// Streams answers; returns the bytes that the daemon wrote for them.
async fn write(rig: &Rig, (daemon, mut client): (Child, Client), answers: usize) -> Result<f64> {
    daemon.settle().await?;
    // The first turn loads the session.
    client.turn(rig.script(1, 0)).await?;
    sleep(SETTLE_DELAY).await;
    let before = daemon.written()?;
    for _ in 0..answers {
        client.turn(rig.script(DELTAS_OF_ANSWER, GAP_US)).await?;
    }
    sleep(SETTLE_DELAY).await;
    let written = daemon.written()? - before;
    daemon.stop().await?;
    Ok(written)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
