//! Decodes requests about runs.

use std::ops::RangeInclusive;

use quintet_kernel::event::Seq;
use quintet_kernel::id::ControlId;
use quintet_kernel::port::RunFilter;
use quintet_kernel::run::{
    ControlAction, ControlMode, NewRun, Reporter, RunCommand, RunEnd, RunFile, RunReport,
    RunStatus, Worker,
};
use serde_json::{Map, Value};

use crate::windie::fields::Object;

const NAME_LIMIT: usize = 1024;
const QUERY_LIMIT: usize = 200_000;
/// The most files of a new run.
const FILES_LIMIT: usize = 1000;
/// The most events of a page.
const EVENTS_LIMIT: u64 = 1000;
const EVENTS_DEFAULT: u64 = 200;
/// The most runs of a list.
const RUNS_LIMIT: u64 = 200;
const RUNS_DEFAULT: u64 = 50;
/// The largest integer that all JSON parsers represent exactly.
const ASSIGNMENT_LIMIT: f64 = 9_007_199_254_740_991.0;

pub(super) fn create(body: &Object<'_>) -> NewRun {
    let (workspace, query) =
        (needed(body, "workspace_id"), body.needed_text("query", 1..=QUERY_LIMIT));
    let (agent, requested_by) = (name(body, "agent_id"), name(body, "requested_by"));
    let mut files = body.objects("files", FILES_LIMIT, file);
    // Like the original, files without an id are ignored.
    files.retain(|file| !file.artifact.is_empty());
    let metadata = body.field("metadata").map();
    let conversation = metadata.get("conversation_ref").and_then(Value::as_str).map(String::from);
    if conversation.as_ref().is_some_and(|name| name.chars().count() > NAME_LIMIT) {
        let why = format!("String should have at most {NAME_LIMIT} characters");
        body.fault(&["metadata", "conversation_ref"], "string_too_long", why);
    }
    let conversation = conversation.and_then(given);
    NewRun { workspace, agent, query, requested_by, files, metadata, conversation }
}

fn file(file: &Object<'_>) -> RunFile {
    RunFile {
        artifact: given(needed(file, "artifact_id")).unwrap_or_default(),
        filename: name(file, "filename").and_then(given),
        content_type: name(file, "content_type").and_then(given),
    }
}

pub(super) fn control(body: &Object<'_>) -> RunCommand {
    let actions = [
        ("pause", Some(ControlAction::Pause)),
        ("resume", Some(ControlAction::Resume)),
        ("stop", Some(ControlAction::Stop)),
        ("set-control-mode", None),
    ];
    let action = body.needed("action").choice(&actions);
    let requested_by = name(body, "requested_by");
    let modes = ControlMode::ALL.map(|mode| (mode.name(), mode));
    let mode = body.field("control_mode").choice(&modes);
    if let (Some(None), None) = (action, mode) {
        body.wrong("control_mode", "Value error, control_mode is required for set-control-mode");
    }
    let set_mode = ControlAction::SetMode(mode.unwrap_or(ControlMode::AgentOnly));
    let action = action.flatten().unwrap_or(set_mode);
    RunCommand::Control { action, requested_by, bulk: false }
}

/// The workspace whose runs are stopped, if one is named, and who requested it.
pub(super) fn stop_all(body: &Object<'_>) -> (Option<String>, Option<String>) {
    (name(body, "workspace_id"), name(body, "requested_by"))
}

/// The workspace and the worker of a heartbeat that polls for work.
pub(super) fn poll(body: &Object<'_>) -> (String, Worker) {
    let workspace = needed(body, "workspace_id");
    let user = Some(needed(body, "user_id"));
    let session = name(body, "session_id");
    (workspace, worker(body, user, session))
}

pub(super) fn heartbeat(body: &Object<'_>) -> RunCommand {
    let session = Some(needed(body, "session_id"));
    RunCommand::Heartbeat { worker: worker(body, None, session) }
}

fn worker(body: &Object<'_>, user: Option<String>, session: Option<String>) -> Worker {
    Worker {
        id: needed(body, "worker_id"),
        vm: needed(body, "vm_id"),
        user,
        session,
        agent: name(body, "agent_id"),
        status: name(body, "status").unwrap_or_else(|| "ready".into()),
        metadata: body.field("metadata").map(),
    }
}

pub(super) fn dispatched(body: &Object<'_>) -> RunCommand {
    let worker = needed(body, "worker_id");
    let (user, turn) = (needed(body, "user_id"), needed(body, "turn_ref"));
    let conversation = name(body, "conversation_ref").and_then(given);
    let by = Reporter { worker, assignment: assignment(body) };
    RunCommand::Dispatch { by, user, turn, conversation }
}

pub(super) fn report(body: &Object<'_>) -> RunReport {
    let kind = needed(body, "event_type");
    let source = name(body, "source").unwrap_or_else(|| "worker-stream".into());
    let payload = body.field("payload").map();
    let worker = name(body, "worker_id").and_then(given);
    let assignment = assignment(body);
    let end = match kind.as_str() {
        "streaming-complete" => Some(RunEnd::Completed),
        "error" => Some(RunEnd::Failed),
        _ => None,
    };
    let word = |name: &str| {
        let word = payload.get(name).and_then(Value::as_str);
        word.filter(|word| word.len() <= NAME_LIMIT).map(String::from)
    };
    let (turn, key) = (word("turn_ref"), word("event_id"));
    let applied = if kind == "run-control-applied" { applied(&payload) } else { Vec::new() };
    let by = worker.map(|worker| Reporter { worker, assignment });
    RunReport { kind, source, payload, end, applied, by, turn, key }
}

/// The commands that a worker reports as applied, in the event or in the message that it relays.
fn applied(payload: &Map<String, Value>) -> Vec<ControlId> {
    let inner = payload.get("payload").and_then(|inner| inner.get("command_id"));
    let named = [payload.get("command_id"), inner].into_iter().flatten();
    named.filter_map(Value::as_str).filter_map(ControlId::parse).collect()
}

/// The number after which events are requested, and how many.
pub(super) fn page(query: &Object<'_>) -> (Seq, usize) {
    let after = number(query, "after_seq", 0..=i64::MAX as u64).unwrap_or(0);
    (after, limit(query, EVENTS_LIMIT, EVENTS_DEFAULT))
}

/// The requested runs, and how many.
pub(super) fn list(query: &Object<'_>) -> (RunFilter, usize) {
    let known = RunStatus::ALL.map(|status| (status.name(), Some(status)));
    let words: Vec<_> = [("active", None)].into_iter().chain(known).collect();
    let status = query.field("status").choice(&words);
    let filter = RunFilter {
        workspace: query.text("workspace_id", 1..=NAME_LIMIT),
        worker: query.text("worker_id", 1..=NAME_LIMIT),
        status: status.flatten(),
        active: status == Some(None),
    };
    (filter, limit(query, RUNS_LIMIT, RUNS_DEFAULT))
}

fn limit(query: &Object<'_>, most: u64, default: u64) -> usize {
    let limit = number(query, "limit", 1..=most).unwrap_or(default);
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// A number in a query, where all values are text.
fn number(query: &Object<'_>, name: &str, within: RangeInclusive<u64>) -> Option<u64> {
    let (least, most) = within.into_inner();
    let (kind, why) = match query.member(name)?.as_str()?.parse::<i128>() {
        Err(_) => ("int_parsing", "Input should be a valid integer".to_owned()),
        Ok(number) if number < i128::from(least) => {
            ("greater_than_equal", format!("Input should be greater than or equal to {least}"))
        }
        Ok(number) if number > i128::from(most) => {
            ("less_than_equal", format!("Input should be less than or equal to {most}"))
        }
        Ok(number) => return u64::try_from(number).ok(),
    };
    query.fault(&[name], kind, why);
    None
}

fn needed(body: &Object<'_>, name: &str) -> String {
    body.needed_text(name, 1..=NAME_LIMIT)
}

fn name(body: &Object<'_>, name: &str) -> Option<String> {
    body.text(name, 0..=NAME_LIMIT)
}

/// A text that is not blank, trimmed.
#[expect(clippy::needless_pass_by_value, reason = "the shape that and_then wants")]
fn given(text: String) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The number of the worker's assignment, which workers of this daemon send.
fn assignment(body: &Object<'_>) -> Option<u64> {
    let value = body.member("assignment")?;
    let number = value.as_f64().filter(|number| number.fract() == 0.0);
    let number = number.filter(|number| (0.0..=ASSIGNMENT_LIMIT).contains(number));
    if number.is_none() {
        let why = "Input should be a valid integer greater than or equal to 0";
        body.fault(&["assignment"], "int_type", why);
    }
    number.map(|number| number as u64)
}
