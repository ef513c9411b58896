//! The control plane of runs: `/api/runs/*`, with its own key.
//!
//! `decode` reads requests, `encode` formats runs and their events; the core does the rest.

mod decode;
mod encode;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use quintet_kernel::RunId;
use quintet_kernel::port::{Page, RunError, RunReceipt, Runs};
use quintet_kernel::run::{RunCommand, RunRefusal};
use serde_json::{Value, json};

use super::reply::Reply;
use super::{Body, JsonReply, read_query, text};
use crate::transport::access::Token;
use crate::windie::serve::AppState;

const KEY: &str = "x-windie-runs-key";
const CONTROL_KEY: &str = "x-windie-runs-control-key";
const MISMATCH: &str = "Run not found or worker mismatch";
/// The largest request that creates a run.
const CREATE_BODY_LIMIT: usize = 4 * 1024 * 1024;
/// The largest event; no message of the protocol is larger.
const EVENT_BODY_LIMIT: usize = 10 * 1024 * 1024;
/// The largest of the other requests.
const BODY_LIMIT: usize = 64 * 1024;
/// The size of a page of events; clients request the rest with another page.
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// A request with the right key. A control key, if configured, is needed to stop all runs.
pub(super) struct Unlocked {
    app: AppState,
    uri: Uri,
}

impl FromRequestParts<AppState> for Unlocked {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Reply> {
        let has = |key: &Token, name: &str| {
            key.matches(text(&parts.headers, name).unwrap_or_default().trim())
        };
        let stops_all = parts.uri.path().trim_end_matches('/').ends_with("/stop-all");
        let (is_right, refused) = match (&app.settings.runs_control_key, &app.settings.runs_key) {
            (Some(key), _) if stops_all => {
                (has(key, CONTROL_KEY), Reply::new(403, "Invalid runs control API key"))
            }
            (_, Some(key)) => (has(key, KEY), Reply::new(401, "Invalid runs API key")),
            (_, None) => (false, Reply::new(503, "Runs API key is not configured")),
        };
        let request = Self { app: app.clone(), uri: parts.uri.clone() };
        if is_right { Ok(request) } else { Err(refused) }
    }
}

impl Unlocked {
    fn runs(&self) -> &dyn Runs {
        &*self.app.ports.runs
    }

    /// The run in the path.
    fn run(&self) -> Result<RunId, Reply> {
        let id = self.uri.path().split('/').nth(3).and_then(RunId::parse);
        id.ok_or_else(|| Reply::new(404, "Run not found"))
    }

    async fn submit(&self, command: RunCommand) -> JsonReply {
        let RunReceipt { entry, latest } = self.runs().submit(&self.run()?, command).await?;
        let latest = encode::event(&entry.run.id, latest);
        Ok(Json(json!({ "run": encode::view(&entry), "latest_event": latest })))
    }
}

pub(super) async fn create(request: Unlocked, body: Body<CREATE_BODY_LIMIT>) -> JsonReply {
    let RunReceipt { entry, latest } = request.runs().create(body.read(decode::create)?).await?;
    let events = [encode::event(&entry.run.id, latest)];
    Ok(Json(json!({ "run": encode::view(&entry), "events": events })))
}

pub(super) async fn list(request: Unlocked) -> JsonReply {
    let (filter, limit) = read_query(request.uri.query(), decode::list)?;
    let runs = request.runs().list(filter, limit).await?;
    let runs: Vec<Value> = runs.iter().map(encode::view).collect();
    Ok(Json(json!({ "runs": runs })))
}

pub(super) async fn show(request: Unlocked) -> JsonReply {
    Ok(Json(encode::view(&request.runs().view(&request.run()?).await?)))
}

pub(super) async fn events(request: Unlocked) -> JsonReply {
    let (after, limit) = read_query(request.uri.query(), decode::page)?;
    let (id, page) = (request.run()?, Page { events: limit, bytes: PAGE_BYTES });
    let records = request.runs().events(&id, after, page).await?;
    let next = records.last().map_or(after, |record| record.seq);
    let events: Vec<Value> = records.into_iter().map(|record| encode::event(&id, record)).collect();
    Ok(Json(json!({ "run_id": id.as_str(), "events": events, "next_after_seq": next })))
}

pub(super) async fn report(request: Unlocked, body: Body<EVENT_BODY_LIMIT>) -> JsonReply {
    request.submit(RunCommand::Report(body.read(decode::report)?)).await
}

pub(super) async fn control(request: Unlocked, body: Body<BODY_LIMIT>) -> JsonReply {
    request.submit(body.read(decode::control)?).await
}

pub(super) async fn heartbeat(request: Unlocked, body: Body<BODY_LIMIT>) -> JsonReply {
    request.submit(body.read(decode::heartbeat)?).await
}

pub(super) async fn dispatched(request: Unlocked, body: Body<BODY_LIMIT>) -> JsonReply {
    match request.submit(body.read(decode::dispatched)?).await {
        Err(reply) if reply.status() == 404 => Err(Reply::new(404, MISMATCH)),
        other => other,
    }
}

pub(super) async fn stop_all(request: Unlocked, body: Body<BODY_LIMIT>) -> JsonReply {
    let (workspace, requested_by) = body.read(decode::stop_all)?;
    let wanted = workspace.clone().filter(|workspace| !workspace.trim().is_empty());
    let stopped = request.runs().stop_all(wanted, requested_by).await?;
    let ids: Vec<&str> = stopped.iter().map(RunId::as_str).collect();
    Ok(Json(json!({ "workspace_id": workspace, "stopped_run_ids": ids, "count": stopped.len() })))
}

pub(super) async fn poll(request: Unlocked, body: Body<BODY_LIMIT>) -> JsonReply {
    let (workspace, worker) = body.read(decode::poll)?;
    let shown = encode::worker(&worker, &workspace, request.app.now());
    let polled = request.runs().poll(workspace, worker).await?;
    let commands: Vec<Value> =
        polled.controls.iter().map(|(run, control)| encode::command(run, control)).collect();
    let assigned = polled.assigned.as_ref().map(|entry| encode::assigned(&entry.run));
    Ok(Json(json!({ "worker": shown, "assigned_run": assigned, "control_commands": commands })))
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
