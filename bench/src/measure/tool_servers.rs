//! Many MCP servers on stdio: the time until all their tools are listed, and their memory.
//!
//! The server is this program itself (`quintet-bench tool-server`), so that it hardly affects the
//! figures.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tokio::time::sleep;

use super::Plan;
use crate::child::Child;
use crate::clock::{median, ms, now};
use crate::http::Conn;
use crate::rig::Rig;
use crate::table::Row;

const SERVERS: usize = 30;
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// Pages that only the start needed are released within this time.
const SETTLE_DELAY: Duration = Duration::from_secs(13);
const SET: [&str; 1] = ["listen.console=127.0.0.1:0"];

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let plain = rig.daemon_with("no-tool-servers", &SET).await?;
    sleep(SETTLE_DELAY).await;
    let before = plain.rss_mb()?;
    plain.stop().await?;
    let program = std::env::current_exe()?;
    let servers = (0..SERVERS).fold(String::new(), |mut text, n| {
        let _ = writeln!(text, "[mcp.servers.s{n}]\ncommand = [{program:?}, \"tool-server\"]");
        text
    });
    let mut listed = Vec::new();
    let mut memory = (0.0, 0.0);
    for round in 0..plan.rounds(5, 2) {
        // Separate data, because a daemon stores the last lists of servers.
        let daemon = rig.daemon_on(&format!("tool-servers-{round}"), &servers, &SET).await?;
        listed.push(ms(daemon.started, all_listed(&daemon).await?));
        if round == 0 {
            sleep(SETTLE_DELAY).await;
            memory = (daemon.rss_mb()?, supervisors_mb(&daemon)?);
        }
        daemon.stop().await?;
    }
    let note = format!(
        "against a daemon without; their {SERVERS} supervisors take {:.1} MB (Pss) in all",
        memory.1
    );
    Ok(vec![
        Row::new(format!("start -> the tools of {SERVERS} MCP servers are listed, ms"))
            .quintet(median(&listed)),
        Row::new(format!("RSS with {SERVERS} MCP servers, MB"))
            .against(before)
            .quintet(memory.0)
            .note(note),
    ])
}

/// The time when every server had listed its tools.
async fn all_listed(daemon: &Child) -> Result<u64> {
    let mut conn = Conn::open(daemon.http("console")?).await?;
    let began = Instant::now();
    loop {
        let answer: Value =
            serde_json::from_slice(&conn.call("GET", "/api/tool-servers", "").await?)?;
        let servers = answer["servers"].as_array().context("no list of servers")?;
        let has_tools = |server: &&Value| {
            server["state"] == "ready"
                && server["tools"].as_array().is_some_and(|tools| !tools.is_empty())
        };
        if servers.iter().filter(has_tools).count() == SERVERS {
            return Ok(now());
        }
        if began.elapsed() > LIST_TIMEOUT {
            bail!("not every server is there: {answer}");
        }
        sleep(LOOK_INTERVAL).await;
    }
}

/// The memory of the daemon's own children, with shared pages counted proportionally.
fn supervisors_mb(daemon: &Child) -> Result<f64> {
    let parent = format!("PPid:\t{}", daemon.pid());
    let mut kb = 0.0;
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let status = fs::read_to_string(folder.join("status")).unwrap_or_default();
        if status.lines().any(|line| line == parent) {
            let rollup = fs::read_to_string(folder.join("smaps_rollup"))?;
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            let text = line.context("Pss")?.trim().trim_end_matches("kB").trim();
            kb += text.parse::<f64>()?;
        }
    }
    Ok(kb / 1024.0)
}
