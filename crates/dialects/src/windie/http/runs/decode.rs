//! What requests about runs ask for.

use quintet_kernel::event::Seq;
use quintet_kernel::id::ControlId;
use quintet_kernel::port::RunFilter;
use quintet_kernel::run::{
    ControlAction, ControlMode, NewRun, Reporter, RunCommand, RunEnd, RunFile, RunReport,
    RunStatus, Worker,
};
use serde_json::{Map, Value, json};

use super::super::fields::Fields;
use super::super::reply::Reply;

const NAME_LIMIT: usize = 1024;
const QUERY_LIMIT: usize = 200_000;
/// The most files that a run may begin with.
const FILES_LIMIT: usize = 1000;
/// The most events that are given at once.
const EVENTS_LIMIT: u64 = 1000;
const EVENTS_DEFAULT: u64 = 200;
/// The most runs that are listed at once.
const RUNS_LIMIT: u64 = 200;
const RUNS_DEFAULT: u64 = 50;
/// The largest number that JSON readers agree on.
const ASSIGNMENT_LIMIT: u64 = (1 << 53) - 1;

pub(super) fn create(mut fields: Fields) -> Result<NewRun, Reply> {
    let workspace = fields.text("workspace_id", 1..=NAME_LIMIT);
    let query = fields.text("query", 1..=QUERY_LIMIT);
    let (agent, requested_by) = (name(&mut fields, "agent_id"), name(&mut fields, "requested_by"));
    let mut files = Vec::new();
    fields.maybe_objects("files", FILES_LIMIT, |file| {
        let artifact = file.text("artifact_id", 1..=NAME_LIMIT);
        let (filename, content_type) = (name(file, "filename"), name(file, "content_type"));
        // Like the original, a file without a name is passed over.
        files.extend(given(artifact).map(|artifact| RunFile {
            artifact,
            filename: filename.and_then(given),
            content_type: content_type.and_then(given),
        }));
    });
    let metadata = object(&mut fields, "metadata");
    let conversation = metadata.get("conversation_ref").and_then(Value::as_str).map(String::from);
    if conversation.as_ref().is_some_and(|name| name.chars().count() > NAME_LIMIT) {
        let why = format!("String should have at most {NAME_LIMIT} characters");
        fields.wrong(&[json!("metadata"), json!("conversation_ref")], "string_too_long", &why);
    }
    let conversation = conversation.and_then(given);
    fields.rest()?;
    Ok(NewRun { workspace, agent, query, requested_by, files, metadata, conversation })
}

pub(super) fn control(mut fields: Fields) -> Result<RunCommand, Reply> {
    let action = fields.word("action", &["pause", "resume", "stop", "set-control-mode"]);
    let requested_by = name(&mut fields, "requested_by");
    let modes = ControlMode::ALL.map(ControlMode::name);
    let mode = fields.maybe_word("control_mode", &modes).and_then(ControlMode::named);
    let action = match (action, mode) {
        (Some("pause"), _) => Some(ControlAction::Pause),
        (Some("resume"), _) => Some(ControlAction::Resume),
        (Some("stop"), _) => Some(ControlAction::Stop),
        (Some(_), Some(mode)) => Some(ControlAction::SetMode(mode)),
        (Some(_), None) => {
            let why = "Value error, control_mode is required for set-control-mode";
            fields.wrong(&[json!("control_mode")], "value_error", why);
            None
        }
        (None, _) => None,
    };
    fields.rest()?;
    let action = action.expect("an action that is none is wrong");
    Ok(RunCommand::Control { action, requested_by, bulk: false })
}

/// Which runs are to be stopped.
pub(super) struct StopAll {
    pub(super) workspace: Option<String>,
    pub(super) requested_by: Option<String>,
}

pub(super) fn stop_all(mut fields: Fields) -> Result<StopAll, Reply> {
    let (workspace, requested_by) =
        (name(&mut fields, "workspace_id"), name(&mut fields, "requested_by"));
    fields.rest()?;
    Ok(StopAll { workspace, requested_by })
}

/// A worker that asks for work.
pub(super) struct Heartbeat {
    pub(super) workspace: String,
    pub(super) worker: Worker,
}

pub(super) fn poll(mut fields: Fields) -> Result<Heartbeat, Reply> {
    let workspace = fields.text("workspace_id", 1..=NAME_LIMIT);
    let user = Some(fields.text("user_id", 1..=NAME_LIMIT));
    let session = name(&mut fields, "session_id");
    let worker = worker(fields, user, session)?;
    Ok(Heartbeat { workspace, worker })
}

pub(super) fn heartbeat(mut fields: Fields) -> Result<RunCommand, Reply> {
    let session = Some(fields.text("session_id", 1..=NAME_LIMIT));
    let worker = worker(fields, None, session)?;
    Ok(RunCommand::Heartbeat { worker })
}

fn worker(
    mut fields: Fields,
    user: Option<String>,
    session: Option<String>,
) -> Result<Worker, Reply> {
    let id = fields.text("worker_id", 1..=NAME_LIMIT);
    let vm = fields.text("vm_id", 1..=NAME_LIMIT);
    let agent = name(&mut fields, "agent_id");
    let status = name(&mut fields, "status").unwrap_or_else(|| "ready".into());
    let metadata = object(&mut fields, "metadata");
    fields.rest()?;
    Ok(Worker { id, vm, user, session, agent, status, metadata })
}

pub(super) fn dispatched(mut fields: Fields) -> Result<RunCommand, Reply> {
    let worker = fields.text("worker_id", 1..=NAME_LIMIT);
    let user = fields.text("user_id", 1..=NAME_LIMIT);
    let turn = fields.text("turn_ref", 1..=NAME_LIMIT);
    let conversation = name(&mut fields, "conversation_ref").and_then(given);
    let assignment = assignment(&mut fields);
    fields.rest()?;
    let by = Reporter { worker, assignment };
    Ok(RunCommand::Dispatch { by, user, turn, conversation })
}

pub(super) fn report(mut fields: Fields) -> Result<RunReport, Reply> {
    let kind = fields.text("event_type", 1..=NAME_LIMIT);
    let source = name(&mut fields, "source").unwrap_or_else(|| "worker-stream".into());
    let payload = object(&mut fields, "payload");
    let worker = name(&mut fields, "worker_id").and_then(given);
    let assignment = assignment(&mut fields);
    fields.rest()?;
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
    Ok(RunReport { kind, source, payload, end, applied, by, turn, key })
}

/// The command that a worker says it carried out, in the event or in the message that it relays.
fn applied(payload: &Map<String, Value>) -> Vec<ControlId> {
    let inner = payload.get("payload").and_then(|inner| inner.get("command_id"));
    let named = [payload.get("command_id"), inner].into_iter().flatten();
    named.filter_map(Value::as_str).filter_map(ControlId::parse).collect()
}

/// Which events are asked for: those after a number, and how many.
pub(super) fn page(query: &str) -> Result<(Seq, usize), Reply> {
    let mut fields = Fields::of_query(query, &["after_seq", "limit"]);
    let after = number(&mut fields, "after_seq", (0, i64::MAX as u64)).unwrap_or(0);
    let limit = number(&mut fields, "limit", (1, EVENTS_LIMIT)).unwrap_or(EVENTS_DEFAULT);
    fields.rest()?;
    Ok((after, usize::try_from(limit).unwrap_or(usize::MAX)))
}

/// Which runs are asked for, and how many.
pub(super) fn list(query: &str) -> Result<(RunFilter, usize), Reply> {
    let names = ["workspace_id", "worker_id", "status", "limit"];
    let mut fields = Fields::of_query(query, &names);
    let words: Vec<&'static str> =
        ["active"].into_iter().chain(RunStatus::ALL.map(RunStatus::name)).collect();
    let status = fields.maybe_word("status", &words);
    let filter = RunFilter {
        workspace: fields.maybe_text("workspace_id", 1..=NAME_LIMIT),
        worker: fields.maybe_text("worker_id", 1..=NAME_LIMIT),
        status: status.and_then(RunStatus::named),
        active: status == Some("active"),
    };
    let limit = number(&mut fields, "limit", (1, RUNS_LIMIT)).unwrap_or(RUNS_DEFAULT);
    fields.rest()?;
    Ok((filter, usize::try_from(limit).unwrap_or(usize::MAX)))
}

fn number(fields: &mut Fields, name: &str, (least, most): (u64, u64)) -> Option<u64> {
    let Some(Value::String(text)) = fields.take(name) else { return None };
    let (kind, why) = match text.parse::<i128>() {
        Err(_) => ("int_parsing", "Input should be a valid integer".to_owned()),
        Ok(number) if number < i128::from(least) => {
            ("greater_than_equal", format!("Input should be greater than or equal to {least}"))
        }
        Ok(number) if number > i128::from(most) => {
            ("less_than_equal", format!("Input should be less than or equal to {most}"))
        }
        Ok(number) => return u64::try_from(number).ok(),
    };
    fields.wrong(&[json!(name)], kind, &why);
    None
}

fn name(fields: &mut Fields, name: &str) -> Option<String> {
    fields.maybe_text(name, 0..=NAME_LIMIT)
}

/// Text that says something, without the space around it.
fn given(text: String) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn object(fields: &mut Fields, name: &str) -> Map<String, Value> {
    match fields.take(name) {
        None => Map::new(),
        Some(Value::Object(members)) => members,
        Some(_) => {
            fields.wrong(&[json!(name)], "dict_type", "Input should be a valid dictionary");
            Map::new()
        }
    }
}

/// The number of the assignment that a worker acts for, which our own workers name.
fn assignment(fields: &mut Fields) -> Option<u64> {
    let value = fields.take("assignment")?;
    let whole = value.as_f64().filter(|number| number.fract() == 0.0);
    let number = value.as_u64().filter(|number| *number <= ASSIGNMENT_LIMIT);
    let number = number.or_else(|| {
        let within = whole.filter(|number| (0.0..=ASSIGNMENT_LIMIT as f64).contains(number));
        within.map(|number| number as u64)
    });
    if number.is_none() {
        let why = "Input should be a valid integer greater than or equal to 0";
        fields.wrong(&[json!("assignment")], "int_type", why);
    }
    number
}
