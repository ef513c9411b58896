//! The control plane of runs: `/api/runs/*`, for those who have its key.
//!
//! `decode` reads requests, `encode` shows runs and their events; what happens in between is the core's.

mod decode;
mod encode;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use quintet_kernel::RunId;
use quintet_kernel::port::{Page, RunError, RunReceipt};
use quintet_kernel::run::{RunCommand, RunRefusal};
use serde_json::{Value, json};

use self::decode::{Heartbeat, StopAll};
use super::fields::Fields;
use super::reply::{Reply, ok};
use super::{body_within, text};
use crate::transport::access::Token;
use crate::windie::serve::AppState;

const KEY: &str = "x-windie-runs-key";
const CONTROL_KEY: &str = "x-windie-runs-control-key";
const MISMATCH: &str = "Run not found or worker mismatch";
/// The largest request that makes a run.
const CREATE_BODY_LIMIT: usize = 4 * 1024 * 1024;
/// The largest event; no message of the protocol is larger.
const EVENT_BODY_LIMIT: usize = 10 * 1024 * 1024;
/// The largest of the other requests.
const BODY_LIMIT: usize = 64 * 1024;
/// Events are given until they have so many bytes together; a client asks for the rest.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// A request about runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Create,
    List,
    Show,
    Events,
    Report,
    Control,
    StopAll,
    Poll,
    Heartbeat,
    Dispatched,
}

impl Run {
    /// What there is below the path of runs, by method.
    pub(super) fn offered(segments: &[&str]) -> &'static [(&'static str, Self)] {
        match segments {
            [] => &[("POST", Self::Create), ("GET", Self::List)],
            ["stop-all"] => &[("POST", Self::StopAll)],
            ["workers", "heartbeat"] => &[("POST", Self::Poll)],
            [_, "control"] => &[("POST", Self::Control)],
            [_, "worker-dispatched"] => &[("POST", Self::Dispatched)],
            [_, "worker-heartbeat"] => &[("POST", Self::Heartbeat)],
            [_, "events"] => &[("GET", Self::Events), ("POST", Self::Report)],
            [_] => &[("GET", Self::Show)],
            _ => &[],
        }
    }
}

/// Answers a request about runs.
pub(super) async fn answer(app: &AppState, run: Run, request: Request) -> Result<Response, Reply> {
    unlock(app, run, request.headers())?;
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    match run {
        Run::Create => create(app, read(request, CREATE_BODY_LIMIT).await?).await,
        Run::List => list(app, &query).await,
        Run::Show => show(app, &path).await,
        Run::Events => events(app, &path, &query).await,
        Run::Report => {
            let report = decode::report(read(request, EVENT_BODY_LIMIT).await?)?;
            submit(app, &path, RunCommand::Report(report)).await
        }
        Run::Control => {
            let control = decode::control(read(request, BODY_LIMIT).await?)?;
            submit(app, &path, control).await
        }
        Run::StopAll => stop_all(app, read(request, BODY_LIMIT).await?).await,
        Run::Poll => poll(app, read(request, BODY_LIMIT).await?).await,
        Run::Heartbeat => {
            let heartbeat = decode::heartbeat(read(request, BODY_LIMIT).await?)?;
            submit(app, &path, heartbeat).await
        }
        Run::Dispatched => {
            let dispatched = decode::dispatched(read(request, BODY_LIMIT).await?)?;
            match submit(app, &path, dispatched).await {
                Err(reply) if reply.status() == 404 => Err(Reply::new(404, MISMATCH)),
                other => other,
            }
        }
    }
}

async fn read(request: Request, limit: usize) -> Result<Fields, Reply> {
    body_within(request, limit).await
}

/// Lets in whoever has the key. Where there is a control key, it alone opens what stops every run.
fn unlock(app: &AppState, run: Run, headers: &HeaderMap) -> Result<(), Reply> {
    let has = |key: &Token, name: &str| key.matches(text(headers, name).unwrap_or_default().trim());
    if run == Run::StopAll
        && let Some(key) = &app.settings.runs_control_key
    {
        let refused = || Reply::new(403, "Invalid runs control API key");
        return has(key, CONTROL_KEY).then_some(()).ok_or_else(refused);
    }
    let key = app.settings.runs_key.as_ref();
    let key = key.ok_or_else(|| Reply::new(503, "Runs API key is not configured"))?;
    has(key, KEY).then_some(()).ok_or_else(|| Reply::new(401, "Invalid runs API key"))
}

/// The run that a path is about.
fn run_of(path: &str) -> Result<RunId, Reply> {
    let id = path.split('/').nth(3).and_then(RunId::parse);
    id.ok_or_else(|| Reply::new(404, "Run not found"))
}

async fn create(app: &AppState, fields: Fields) -> Result<Response, Reply> {
    let RunReceipt { entry, latest } = app.ports.runs.create(decode::create(fields)?).await?;
    let events = [encode::event(&entry.run.id, latest)];
    Ok(ok(&json!({ "run": encode::view(&entry), "events": events })))
}

async fn list(app: &AppState, query: &str) -> Result<Response, Reply> {
    let (filter, limit) = decode::list(query)?;
    let runs = app.ports.runs.list(filter, limit).await?;
    let runs: Vec<Value> = runs.iter().map(encode::view).collect();
    Ok(ok(&json!({ "runs": runs })))
}

async fn show(app: &AppState, path: &str) -> Result<Response, Reply> {
    Ok(ok(&encode::view(&app.ports.runs.view(&run_of(path)?).await?)))
}

async fn events(app: &AppState, path: &str, query: &str) -> Result<Response, Reply> {
    let (after, limit) = decode::page(query)?;
    let (id, page) = (run_of(path)?, Page { events: limit, bytes: PAGE_BYTES });
    let records = app.ports.runs.events(&id, after, page).await?;
    let next = records.last().map_or(after, |record| record.seq);
    let events: Vec<Value> = records.into_iter().map(|record| encode::event(&id, record)).collect();
    Ok(ok(&json!({ "run_id": id.as_str(), "events": events, "next_after_seq": next })))
}

async fn submit(app: &AppState, path: &str, command: RunCommand) -> Result<Response, Reply> {
    let RunReceipt { entry, latest } = app.ports.runs.submit(&run_of(path)?, command).await?;
    let latest = encode::event(&entry.run.id, latest);
    Ok(ok(&json!({ "run": encode::view(&entry), "latest_event": latest })))
}

async fn stop_all(app: &AppState, fields: Fields) -> Result<Response, Reply> {
    let StopAll { workspace, requested_by } = decode::stop_all(fields)?;
    let wanted = workspace.clone().filter(|workspace| !workspace.trim().is_empty());
    let stopped = app.ports.runs.stop_all(wanted, requested_by).await?;
    let ids: Vec<&str> = stopped.iter().map(RunId::as_str).collect();
    let answer =
        json!({ "workspace_id": workspace, "stopped_run_ids": ids, "count": stopped.len() });
    Ok(ok(&answer))
}

async fn poll(app: &AppState, fields: Fields) -> Result<Response, Reply> {
    let Heartbeat { workspace, worker } = decode::poll(fields)?;
    let shown = encode::worker(&worker, &workspace, app.now());
    let polled = app.ports.runs.poll(workspace, worker).await?;
    let commands: Vec<Value> =
        polled.controls.iter().map(|(run, control)| encode::command(run, control)).collect();
    let assigned = polled.assigned.as_ref().map(|entry| encode::assigned(&entry.run));
    let answer = json!({ "worker": shown, "assigned_run": assigned, "control_commands": commands });
    Ok(ok(&answer))
}

impl From<RunError> for Reply {
    fn from(error: RunError) -> Self {
        match error {
            RunError::NotFound(_) => Self::new(404, "Run not found"),
            RunError::Refused(refusal) => refused(&refusal),
            RunError::Storage(error) => error.into(),
        }
    }
}

fn refused(refusal: &RunRefusal) -> Reply {
    match refusal {
        RunRefusal::Mismatch => Reply::new(404, MISMATCH),
        RunRefusal::Finished(status) => {
            Reply::new(409, format!("Run is already {}", status.name()))
        }
        RunRefusal::NotWaiting => Reply::new(409, "Run is not waiting for a worker"),
        RunRefusal::TooManyEvents => Reply::new(409, "Run has too many events"),
        RunRefusal::TooManyRuns { workspace, limit } => {
            let why = format!("Active run limit reached for workspace '{workspace}' ({limit}).");
            Reply::new(409, why)
        }
    }
}

#[cfg(test)]
mod tests;
