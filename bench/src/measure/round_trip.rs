//! The time from a tool call of the model to the model's next request.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::Plan;
use crate::client::{Client, Session};
use crate::clock::{median, ms};
use crate::http::Conn;
use crate::rig::Rig;
use crate::script::{Script, Tool};
use crate::table::Row;

const TURNS: usize = 20;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("round_trip").await?;
    let (mut read, mut shell) = (Vec::new(), Vec::new());
    // A failing tool is fast, so the first turns, which also warm up, must have succeeded.
    let mut session = Session::create(daemon.address, &rig.workspace()).await?;
    for tool in [Tool::ReadFile, Tool::Shell] {
        session.turn(Script { call: Some(tool), ..rig.script(1, 0) }).await?;
    }
    let mut conn = Conn::open(daemon.address).await?;
    let path = format!("/v1/sessions/{}/events?format=json", session.id);
    let events: Vec<Value> = serde_json::from_slice(&conn.call("GET", &path, "").await?)?;
    let done = events.iter().filter(|event| event["type"] == "tool_call_completed");
    let worked = done.filter(|event| event["data"]["ok"] == true).count();
    ensure!(worked == 2, "{worked} of 2 tools worked");
    rig.log().await?;
    for _ in 0..plan.rounds(10, 2) {
        let mut session = rig.session(&daemon).await?;
        read.extend(trips(rig, &mut session, Tool::ReadFile).await?);
        shell.extend(trips(rig, &mut session, Tool::Shell).await?);
    }
    daemon.stop().await?;
    let note = "model writes the call -> first byte of its next request";
    Ok(vec![
        Row::new("tool round trip, read_file, ms").quintet(median(&read)).aim("<= 8").note(note),
        Row::new("tool round trip, shell true, ms").quintet(median(&shell)),
    ])
}

async fn trips(rig: &Rig, client: &mut Client, tool: Tool) -> Result<Vec<f64>> {
    let mut ids = Vec::new();
    for _ in 0..TURNS {
        let script = Script { call: Some(tool), ..rig.script(1, 0) };
        client.turn(script).await?;
        ids.push(script.id);
    }
    let log = rig.log().await?;
    let trip = |id: &u64| {
        let calls: Vec<_> = log.iter().filter(|call| call.id == *id).collect();
        let [first, second] = calls[..] else { bail!("the model was asked {} times", calls.len()) };
        Ok(ms(*first.writes.first().context("no tool was called")?, second.arrived))
    };
    ids.iter().map(trip).collect()
}
