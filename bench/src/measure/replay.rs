//! Reading a long session from its beginning, loaded and after a restart.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::Plan;
use crate::client::Session;
use crate::clock::median;
use crate::http::Conn;
use crate::rig::{Rig, cpu_of};
use crate::table::Row;

/// Number of harness events of one short turn.
const EVENTS_OF_TURN: usize = 7;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let events = if plan.quick { 2000 } else { 10_000 };
    let turns = events / EVENTS_OF_TURN + 1;
    let daemon = rig.daemon("replay").await?;
    let mut session = Session::create(daemon.address, &rig.workspace()).await?;
    let id = session.id.clone();
    let made = async {
        let began = Instant::now();
        for _ in 0..turns {
            session.turn(rig.script(1, 0)).await?;
        }
        Ok(began.elapsed().as_secs_f64() * 1000.0)
    };
    let (took, cpu) = cpu_of(&daemon, made).await?;
    drop(session);
    daemon.stop().await?;
    let daemon = rig.daemon("replay").await?;
    let mut conn = Conn::open(daemon.address).await?;
    let path = format!("/v1/sessions/{id}/events?format=json");
    let mut samples = Vec::new();
    let mut size = (0, 0);
    for _ in 0..plan.rounds(7, 3) {
        let began = Instant::now();
        let body = conn.call("GET", &path, "").await?;
        samples.push(began.elapsed().as_secs_f64() * 1000.0);
        size = (serde_json::from_slice::<Vec<Value>>(&body)?.len(), body.len());
    }
    daemon.stop().await?;
    let (count, bytes) = size;
    ensure!(count >= events, "only {count} events are there");
    let per_turn = |ms: f64| ms / turns as f64;
    Ok(vec![
        Row::new(format!("replay of {count} events, ms"))
            .quintet(median(&samples))
            .note(format!("{:.1} MB of JSON", bytes as f64 / 1e6)),
        Row::new(format!("a turn of a session with {turns}, ms"))
            .quintet(per_turn(took))
            .note(format!("mean while it grew; {:.2} ms of CPU", per_turn(cpu))),
    ])
}
