//! The measurements: one file each, and one line in [`ALL`] and in `one`.

mod agent;
mod asked;
mod commands;
mod cost;
mod cpu;
mod crowd;
mod disk;
mod editor_start;
mod families;
mod followers;
mod history;
mod latency;
mod memory;
mod protocols;
mod recovery;
mod replay;
mod round_trip;
mod runs;
mod senses;
mod start;
mod stored;
mod terminal;
mod throughput;
mod tool_servers;
mod tools;
mod voice;
mod wake;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::time::timeout;

use crate::rig::Rig;
use crate::table::{self, Row};

/// The names, in the order of the table.
pub(crate) const ALL: [&str; 27] = [
    "asked",
    "cpu",
    "latency",
    "throughput",
    "families",
    "protocols",
    "history",
    "disk",
    "round_trip",
    "start",
    "editor_start",
    "memory",
    "hibernated",
    "crowd",
    "replay",
    "wake",
    "followers",
    "recovery",
    "restart",
    "terminal",
    "tools",
    "tool_servers",
    "commands",
    "agent",
    "runs",
    "senses",
    "voice",
];

/// Maximum time of a measurement.
const MEASUREMENT_TIMEOUT: Duration = Duration::from_secs(300);

/// How thorough the measurements are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) quick: bool,
    /// The longest measured history, in turns.
    pub(crate) turns: Option<usize>,
    /// The daemon to measure; the one built next to this program if `None`.
    pub(crate) daemon: Option<PathBuf>,
    /// Additional settings of the daemons.
    pub(crate) set: Vec<String>,
}

impl Plan {
    /// The number of rounds: thorough or quick.
    fn rounds(&self, thorough: usize, quick: usize) -> usize {
        if self.quick { quick } else { thorough }
    }
}

/// Runs the measurements and prints the table.
pub(crate) async fn all(names: &[&str], plan: &Plan) -> Result<()> {
    let rig = Rig::new(plan.set.clone(), plan.daemon.clone()).await?;
    let began = Instant::now();
    let mut rows = Vec::new();
    for name in names {
        eprintln!("{:5.1}s {name}", began.elapsed().as_secs_f64());
        let taken = timeout(MEASUREMENT_TIMEOUT, one(name, &rig, plan)).await;
        match taken.context("it took too long").and_then(|taken| taken) {
            Ok(more) => rows.extend(more.into_iter().map(|row| row.load(&load()))),
            Err(error) => {
                eprintln!("{error:#}\n{}", rig.log_tail(name));
                rows.push(Row::new(*name).note(format!("could not be measured: {error:#}")));
            }
        }
        // Processes of one measurement must not affect the next.
        rig.log().await?;
    }
    print(&rows, plan, began.elapsed());
    let Rig { model, proxy, logged, .. } = rig;
    proxy.kill().await?;
    logged.kill().await?;
    model.kill().await
}

async fn one(name: &str, rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    match name {
        "asked" => asked::run(rig, plan).await,
        "cpu" => cpu::run(rig, plan).await,
        "latency" => latency::run(rig, plan).await,
        "throughput" => throughput::run(rig, plan).await,
        "families" => families::run(rig, plan).await,
        "protocols" => protocols::run(rig, plan).await,
        "history" => history::run(rig, plan).await,
        "disk" => disk::run(rig, plan).await,
        "round_trip" => round_trip::run(rig, plan).await,
        "start" => start::run(rig, plan).await,
        "editor_start" => editor_start::run(rig, plan).await,
        "memory" => memory::run(rig, plan).await,
        "hibernated" => memory::hibernated(rig, plan).await,
        "crowd" => crowd::run(rig, plan).await,
        "replay" => replay::run(rig, plan).await,
        "wake" => wake::run(rig, plan).await,
        "followers" => followers::run(rig, plan).await,
        "terminal" => terminal::run(rig, plan).await,
        "tools" => tools::run(rig, plan).await,
        "tool_servers" => tool_servers::run(rig, plan).await,
        "commands" => commands::run(rig, plan).await,
        "agent" => agent::run(rig, plan).await,
        "runs" => runs::run(rig, plan).await,
        "recovery" => recovery::run(rig, plan).await,
        "senses" => senses::run(rig, plan).await,
        "voice" => voice::run(rig, plan).await,
        "restart" => recovery::among_many(rig, plan).await,
        _ => anyhow::bail!("there is no measurement {name:?}"),
    }
}

fn print(rows: &[Row], plan: &Plan, took: Duration) {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let rounds = if plan.quick { "quick rounds" } else { "full rounds" };
    println!("{}", table::render(rows));
    println!(
        "Medians of interleaved rounds. Deltas are counted by the length of the text, because"
    );
    println!("Quintet may put several into one event.");
    println!(
        "{cores} cores, Linux {}, {profile} build, {rounds}, {:.0} s, load {}",
        kernel.trim(),
        took.as_secs_f64(),
        load(),
    );
}

/// The load average of the last minute, including the measurement's own processes.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().unwrap_or_default().to_owned()
}
