//! `quintet runs`: lists, starts, follows and controls runs from a terminal.

pub(crate) mod api;
mod show;

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use quintet_dialects::COMPUTER_USE;
use serde_json::{Value, json};

use crate::cli::{ControlPlane, Runs};
use crate::options::{self, Options};
use api::Api;

/// How often a followed run is polled.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(300);

/// `quintet runs`.
pub(crate) fn main(verb: Runs) -> Result<ExitCode> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    threads.block_on(execute(verb))
}

async fn execute(verb: Runs) -> Result<ExitCode> {
    match verb {
        Runs::List { plane, workspace, status, limit } => {
            let api = connect(&plane)?;
            let limit = limit.to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(workspace.as_deref().map(|name| ("workspace_id", name)));
            query.extend(status.as_deref().map(|name| ("status", name)));
            let listed = api.list(&query).await?;
            let runs = listed["runs"].as_array().into_iter().flatten();
            print(&runs.map(show::line).collect::<Vec<_>>().join("\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Runs::Start { plane, workspace, query, agent, artifact, follow } => {
            let api = connect(&plane)?;
            let files: Vec<Value> =
                artifact.iter().map(|id| json!({ "artifact_id": id })).collect();
            let body = json!({
                "workspace_id": workspace, "query": query, "agent_id": agent, "files": files,
                "requested_by": "quintet runs",
            });
            let created = api.create(body).await?;
            let run = created["run"]["run_id"].as_str().context("the answer names no run")?;
            if !follow {
                print(run)?;
                return Ok(ExitCode::SUCCESS);
            }
            writeln!(std::io::stderr(), "{run}")?;
            self::follow(&api, run, false).await
        }
        Runs::Follow { plane, run, json } => follow(&connect(&plane)?, &run, json).await,
        Runs::Pause { plane, run } => control(&plane, &run, json!({ "action": "pause" })).await,
        Runs::Resume { plane, run } => control(&plane, &run, json!({ "action": "resume" })).await,
        Runs::Mode { plane, run, mode } => {
            let action = json!({ "action": "set-control-mode", "control_mode": mode });
            control(&plane, &run, action).await
        }
        Runs::Stop { plane, run: Some(run), .. } => {
            control(&plane, &run, json!({ "action": "stop" })).await
        }
        Runs::Stop { plane, run: None, workspace, .. } => {
            let body = json!({ "workspace_id": workspace, "requested_by": "quintet runs" });
            let stopped = connect(&plane)?.stop_all(body).await?;
            let ids = stopped["stopped_run_ids"].as_array().into_iter().flatten();
            let ids: Vec<&str> = ids.filter_map(Value::as_str).collect();
            print(&ids.join("\n"))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

async fn control(plane: &ControlPlane, run: &str, mut body: Value) -> Result<ExitCode> {
    body["requested_by"] = "quintet runs".into();
    let changed = connect(plane)?.control(run, body).await?;
    print(&show::line(&changed["run"]))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the events of a run until it ends; succeeds if the run completes.
async fn follow(api: &Api, run: &str, json: bool) -> Result<ExitCode> {
    let (mut after, mut shown) = (0, show::Timeline::default());
    loop {
        // The status is read first: if the run has ended, all its events can be read.
        let view = api.view(run).await?;
        let page = api.events(run, after).await?;
        after = page["next_after_seq"].as_u64().unwrap_or(after);
        for event in page["events"].as_array().into_iter().flatten() {
            let text = if json { format!("{event}\n") } else { shown.event(event) };
            std::io::stdout().write_all(text.as_bytes())?;
        }
        std::io::stdout().flush()?;
        let over = matches!(view["status"].as_str(), Some("stopped" | "completed" | "failed"));
        if over && after >= view["last_event_seq"].as_u64().unwrap_or(0) {
            let well = view["status"] == "completed";
            return Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if page["events"].as_array().is_none_or(Vec::is_empty) {
            tokio::time::sleep(FOLLOW_INTERVAL).await;
        }
    }
}

/// The control plane of the command line or the configuration.
pub(crate) fn connect(plane: &ControlPlane) -> Result<Api> {
    let options = options::read_closed(&plane.flags)?;
    let runs = &options.runs;
    let url = match &plane.url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => format!("http://{}", own_address(&options)?),
    };
    let Some(key) = plane.key.clone().or_else(|| runs.key.clone()) else {
        bail!("no key: give --key, or set {COMPUTER_USE}.runs_key in the configuration");
    };
    let control_key = runs.control_key.clone();
    let token = plane.token.clone().or(options.auth.token);
    Api::new(url, api::Keys { runs: key, control: control_key, token })
}

/// The address of the configured daemon from this machine. Fails if its listener is off or takes
/// any free port.
pub(crate) fn own_address(options: &Options) -> Result<SocketAddr> {
    match options.address(COMPUTER_USE) {
        Some(address) if address.port() != 0 && address.ip().is_unspecified() => {
            Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())))
        }
        Some(address) if address.port() != 0 => Ok(address),
        Some(_) | None => {
            bail!("listen.{COMPUTER_USE} names no port: say where the daemon is with --url")
        }
    }
}

fn print(text: &str) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
