//! The control plane of runs, which this daemon has not yet: what it is asked is looked at, and then
//! it says so.

use axum::extract::Request;
use serde_json::{Value, json};

use super::body;
use super::fields::Fields;
use super::reply::Reply;
use super::service_key::{RUNS, require_key};
use crate::windie::serve::Desk;

const LONGEST_NAME: usize = 1024;
const LONGEST_QUERY: usize = 200_000;
/// The most files that a run may begin with.
const MOST_FILES: usize = 1000;
const MODES: [&str; 3] = ["agent_only", "shared_control", "human_override"];
/// The most events that are given at once.
const MOST_EVENTS: i64 = 1000;

/// A request about runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    Create,
    Show,
    Events,
    Tell,
    Control,
    StopAll,
    Heartbeat,
    Dispatched,
}

impl Run {
    /// What there is below the path of runs, by method.
    pub(super) fn offered(segments: &[&str]) -> &'static [(&'static str, Self)] {
        match segments {
            [] => &[("POST", Self::Create)],
            ["stop-all"] => &[("POST", Self::StopAll)],
            ["workers", "heartbeat"] => &[("POST", Self::Heartbeat)],
            [_, "control"] => &[("POST", Self::Control)],
            [_, "worker-dispatched"] => &[("POST", Self::Dispatched)],
            [_, "events"] => &[("GET", Self::Events), ("POST", Self::Tell)],
            [_] => &[("GET", Self::Show)],
            _ => &[],
        }
    }
}

/// `/api/runs/*`, which is for those who have its key.
pub(super) async fn runs(desk: &Desk, run: Run, request: Request) -> Reply {
    let asked = async {
        require_key(desk.settings.runs_key.as_ref(), request.headers(), &RUNS)?;
        match run {
            Run::Show => Ok(()),
            Run::Events => page(request.uri().query().unwrap_or_default()),
            _ => check(run, body(request).await?),
        }
    };
    asked.await.err().unwrap_or_else(|| Reply::new(503, "Runs API not available"))
}

fn check(run: Run, mut fields: Fields) -> Result<(), Reply> {
    match run {
        Run::Create => {
            fields.text("workspace_id", 1..=LONGEST_NAME);
            fields.text("query", 1..=LONGEST_QUERY);
            names(&mut fields, &["agent_id", "requested_by"]);
            fields.maybe_objects("files", MOST_FILES, |file| {
                file.text("artifact_id", 1..=LONGEST_NAME);
                names(file, &["filename", "content_type"]);
            });
            fields.maybe_object("metadata", |_| {});
        }
        Run::Control => control(&mut fields),
        Run::StopAll => names(&mut fields, &["workspace_id", "requested_by"]),
        Run::Heartbeat => {
            for name in ["workspace_id", "worker_id", "vm_id", "user_id"] {
                fields.text(name, 1..=LONGEST_NAME);
            }
            names(&mut fields, &["session_id", "agent_id", "status"]);
            fields.maybe_object("metadata", |_| {});
        }
        Run::Dispatched => {
            for name in ["worker_id", "user_id", "turn_ref"] {
                fields.text(name, 1..=LONGEST_NAME);
            }
            names(&mut fields, &["conversation_ref"]);
        }
        Run::Tell => {
            fields.text("event_type", 1..=LONGEST_NAME);
            names(&mut fields, &["source"]);
            fields.maybe_object("payload", |_| {});
        }
        // These have no body.
        Run::Show | Run::Events => {}
    }
    fields.rest()
}

fn names(fields: &mut Fields, names: &[&str]) {
    for name in names {
        fields.maybe_text(name, 0..=LONGEST_NAME);
    }
}

fn control(fields: &mut Fields) {
    let action = fields.word("action", &["pause", "resume", "stop", "set-control-mode"]);
    names(fields, &["requested_by"]);
    let mode = fields.maybe_word("control_mode", &MODES);
    if action == Some("set-control-mode") && mode.is_none() {
        let why = "Value error, control_mode is required for set-control-mode";
        fields.wrong(&[json!("control_mode")], "value_error", why);
    }
}

/// Which events are asked for.
fn page(query: &str) -> Result<(), Reply> {
    let mut fields = Fields::of_query(query, &["after_seq", "limit"]);
    for (name, least, most) in [("after_seq", 0, i64::MAX), ("limit", 1, MOST_EVENTS)] {
        let Some(Value::String(given)) = fields.take(name) else { continue };
        let number = given.parse::<i64>().ok();
        let (kind, why) = match number {
            None => ("int_parsing", "Input should be a valid integer".to_owned()),
            Some(number) if number < least => {
                ("greater_than_equal", format!("Input should be greater than or equal to {least}"))
            }
            Some(number) if number > most => {
                ("less_than_equal", format!("Input should be less than or equal to {most}"))
            }
            Some(_) => continue,
        };
        fields.wrong(&[json!(name)], kind, &why);
    }
    fields.rest()
}
