//! The control plane of runs: 10,000 runs in a queue and 200 workers, compared with a bare SQLite
//! table.
//!
//! Every worker has its own connection and continues until the queue is empty: a heartbeat, which
//! assigns a run, the dispatch, and the end. The table makes the same changes one after the other,
//! each with its own commit, in one thread and without HTTP.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use rusqlite::Connection;
use serde_json::{Value, from_slice, json};

use super::Plan;
use crate::http::Conn;
use crate::rig::Rig;
use crate::table::Row;

const RUNS: usize = 10_000;
const WORKERS: usize = 200;
const CREATORS: usize = 50;
const HEARTBEATS: usize = 50;
const KEY: (&str, &str) = ("x-windie-runs-key", "bench");
const SETTINGS: [&str; 3] = [
    "windie.runs_key=bench",
    "windie.max_active_runs_per_workspace=1000000",
    "windie.runs_lease_seconds=600",
];

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let runs = plan.rounds(RUNS, RUNS / 10);
    let daemon = rig.daemon_with("runs", &SETTINGS).await?;
    let address = daemon.http("windie")?;
    daemon.settle().await?;
    let idle = daemon.rss_mb()?;
    let began = Instant::now();
    try_join_all((0..CREATORS).map(|_| create(address, runs / CREATORS))).await?;
    let created = runs as f64 / began.elapsed().as_secs_f64();
    let queued = daemon.rss_mb()?;
    let began = Instant::now();
    let drained = try_join_all((0..WORKERS).map(|n| work(address, n))).await?;
    let took = began.elapsed().as_secs_f64();
    let drained = drained.into_iter().sum::<usize>() as f64;
    let began = Instant::now();
    try_join_all((0..WORKERS).map(|n| idle_beats(address, n))).await?;
    let beats = (WORKERS * HEARTBEATS) as f64 / began.elapsed().as_secs_f64();
    let after = daemon.rss_mb()?;
    daemon.stop().await?;
    let (inserts, changes) = bare(&rig.data("runs-bare.db"), runs)?;
    let memory = format!("{idle:.0} MB idle, {queued:.0} MB with the queue, {after:.0} MB after");
    Ok(vec![
        Row::new(format!("runs created, {CREATORS} connections, runs/s"))
            .against(inserts)
            .quintet(created)
            .note("against inserts into a bare table, a commit each"),
        Row::new(format!("{drained} runs drained by {WORKERS} workers, runs/s"))
            .against(changes / 3.0)
            .quintet(drained / took)
            .note(format!("three changes a run; {took:.1} s; {memory}")),
        Row::new(format!("heartbeats with nothing to do, {WORKERS} workers, 1/s"))
            .quintet(beats)
            .note("no change, so nothing is written"),
    ])
}

async fn create(address: std::net::SocketAddr, runs: usize) -> Result<()> {
    let mut conn = Conn::open(address).await?;
    let body = json!({ "workspace_id": "w", "query": "do something useful", "metadata": {} });
    for _ in 0..runs {
        conn.call_with("/api/runs/", KEY, &body.to_string()).await?;
    }
    Ok(())
}

/// Takes runs until there is none; returns their number.
async fn work(address: std::net::SocketAddr, number: usize) -> Result<usize> {
    let mut conn = Conn::open(address).await?;
    let mut done = 0;
    loop {
        let polled = conn.call_with("/api/runs/workers/heartbeat", KEY, &beat(number)).await?;
        let polled: Value = from_slice(&polled)?;
        let Some(run) = polled["assigned_run"]["run_id"].as_str() else { return Ok(done) };
        let body = json!({
            "worker_id": format!("worker-{number}"), "user_id": "u", "turn_ref": format!("t-{run}"),
        });
        let path = format!("/api/runs/{run}/worker-dispatched");
        conn.call_with(&path, KEY, &body.to_string()).await?;
        let body = json!({ "event_type": "streaming-complete", "payload": {} });
        conn.call_with(&format!("/api/runs/{run}/events"), KEY, &body.to_string()).await?;
        done += 1;
    }
}

async fn idle_beats(address: std::net::SocketAddr, number: usize) -> Result<()> {
    let mut conn = Conn::open(address).await?;
    for _ in 0..HEARTBEATS {
        conn.call_with("/api/runs/workers/heartbeat", KEY, &beat(number)).await?;
    }
    Ok(())
}

fn beat(number: usize) -> String {
    let worker = format!("worker-{number}");
    let body = json!({
        "workspace_id": "w", "worker_id": worker, "vm_id": "vm", "user_id": "u", "status": "ready",
    });
    body.to_string()
}

/// Inserts and updates per second of a bare table.
fn bare(path: &Path, runs: usize) -> Result<(f64, f64)> {
    let db = Connection::open(path)?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT NOT NULL, query TEXT NOT NULL);
         CREATE INDEX waiting ON runs (id) WHERE status = 'awaiting_worker';",
    )
    .context("the bare table")?;
    let began = Instant::now();
    for _ in 0..runs {
        db.prepare_cached("INSERT INTO runs (status, query) VALUES ('awaiting_worker', ?1)")?
            .execute(["do something useful"])?;
    }
    let inserts = runs as f64 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    for _ in 0..runs {
        let id: i64 = db
            .prepare_cached(
                "UPDATE runs SET status = 'queued' WHERE id = (
                     SELECT id FROM runs WHERE status = 'awaiting_worker' ORDER BY id LIMIT 1
                 ) RETURNING id",
            )?
            .query_row([], |row| row.get(0))?;
        for status in ["running", "completed"] {
            db.prepare_cached("UPDATE runs SET status = ?2 WHERE id = ?1")?
                .execute(rusqlite::params![id, status])?;
        }
    }
    Ok((inserts, 3.0 * runs as f64 / began.elapsed().as_secs_f64()))
}
