//! The agent-server protocol: the cost of forking, syncing and listing, by the amount of data.

use std::time::Instant;

use anyhow::{Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::Plan;
use crate::child::Child;
use crate::client::agent::Agent;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

/// Number of connections that fill the store concurrently.
const CONNECTIONS: usize = 32;
/// Number of events that a client misses during a short disconnect.
const MISSED: u64 = 100;
const SET: [&str; 3] =
    ["listen.agent=127.0.0.1:0", "harness.session_tree=false", "audit.log=false"];

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon_with("agent", &SET).await?;
    let lengths = if plan.quick { [200, 1000, 3000] } else { [1000, 10_000, 100_000] };
    let mut rows = Vec::new();
    for length in lengths {
        rows.extend(of_length(rig, plan, &daemon, length).await?);
    }
    let sessions = if plan.quick { 1000 } else { 100_000 };
    rows.extend(lists(rig, plan, &daemon, sessions).await?);
    daemon.stop().await?;
    Ok(rows)
}

/// Forks and syncs a session with this many events.
async fn of_length(rig: &Rig, plan: &Plan, daemon: &Child, length: u64) -> Result<Vec<Row>> {
    let mut agent = Agent::open(daemon, &rig.workspace()).await?;
    let id = agent.session.clone();
    lengthen(rig, daemon, &id, length).await?;
    let rounds = plan.rounds(15, 5);
    let fork = time(&mut agent, rounds, "session.fork", json!({ "sessionId": id })).await?;
    let missed = json!({ "sessionId": id, "after": length - MISSED, "limit": MISSED });
    let missed = time(&mut agent, rounds, "events.list", missed).await?;
    let whole = json!({ "sessionId": id, "after": 0, "limit": 10_000 });
    let (whole, events) = read_all(&mut agent, plan.rounds(3, 2), whole).await?;
    // Last, because the daemon then indexes the forks in the background.
    let past = json!({ "sessionId": id, "eventId": length / 2 });
    let past = time(&mut agent, rounds, "session.fork", past).await?;
    ensure!(events as u64 >= length, "only {events} events are there");
    Ok(vec![
        Row::new(format!("fork of a session with {length} events, ms")).quintet(fork).aim("flat"),
        Row::new(format!("fork in the middle of {length} events, ms")).quintet(past).aim("flat"),
        Row::new(format!("the last {MISSED} of {length} events, ms")).quintet(missed).aim("flat"),
        Row::new(format!("all of {length} events, µs each"))
            .quintet(whole * 1000.0 / events as f64)
            .aim("flat")
            .note(format!("{whole:.0} ms, in pages of 10,000")),
    ])
}

/// Lists this many sessions.
async fn lists(rig: &Rig, plan: &Plan, daemon: &Child, sessions: usize) -> Result<Vec<Row>> {
    let mut agent = Agent::open(daemon, &rig.workspace()).await?;
    let id = agent.session.clone();
    let hands = (0..CONNECTIONS).map(|hand| multiply(rig, daemon, &id, share(sessions, hand)));
    try_join_all(hands).await?;
    let rounds = plan.rounds(15, 5);
    let all = time(&mut agent, rounds, "session.list", json!({ "limit": 100 })).await?;
    let here = json!({ "limit": 100, "workspaceId": rig.workspace() });
    let here = time(&mut agent, rounds, "session.list", here).await?;
    let none = json!({ "limit": 100, "workspaceId": "/nowhere" });
    let none = time(&mut agent, rounds, "session.list", none).await?;
    Ok(vec![
        Row::new(format!("list the newest 100 of {sessions} sessions, ms")).quintet(all),
        Row::new(format!("the same of one workspace of {sessions}, ms")).quintet(here),
        Row::new(format!("the same of a workspace with none, beside {sessions}, ms")).quintet(none),
    ])
}

fn share(of: usize, hand: usize) -> usize {
    of / CONNECTIONS + usize::from(hand < of % CONNECTIONS)
}

/// Adds this many events to a session.
pub(super) async fn lengthen(rig: &Rig, daemon: &Child, id: &str, length: u64) -> Result<()> {
    let wanted = usize::try_from(length)?;
    let hands = (0..CONNECTIONS).map(|hand| async move {
        // A connection with a session of its own, in which nothing happens.
        let mut agent = Agent::open(daemon, &rig.workspace()).await?;
        for n in 0..share(wanted, hand) {
            // Always another model, so that each switch is an event.
            let model = format!("fake/m{hand}-{n}");
            agent.call("model.switch", &json!({ "sessionId": id, "model": model })).await?;
        }
        anyhow::Ok(())
    });
    try_join_all(hands).await?;
    Ok(())
}

/// Creates forks, which are listed like other sessions and need not be loaded.
async fn multiply(rig: &Rig, daemon: &Child, id: &str, times: usize) -> Result<()> {
    let mut agent = Agent::open(daemon, &rig.workspace()).await?;
    for _ in 0..times {
        agent.call("session.fork", &json!({ "sessionId": id })).await?;
    }
    Ok(())
}

/// The time of an answer, in milliseconds.
async fn time(agent: &mut Agent, rounds: usize, method: &str, params: Value) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        agent.call(method, &params).await?;
        samples.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(&samples))
}

/// The time of reading all pages, in milliseconds, and the number of events.
async fn read_all(agent: &mut Agent, rounds: usize, mut params: Value) -> Result<(f64, usize)> {
    let (mut samples, mut count) = (Vec::new(), 0);
    for _ in 0..rounds {
        let began = Instant::now();
        (params["after"], count) = (0.into(), 0);
        loop {
            let page = agent.call("events.list", &params).await?;
            count += page["events"].as_array().map_or(0, Vec::len);
            params["after"] = page["lastSequence"].clone();
            if page["hasMore"] != true {
                break;
            }
        }
        samples.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok((median(&samples), count))
}
