//! A run that the control plane assigned to this worker.

use serde_json::Value;

use super::gate::Mode;

/// An input file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputFile {
    pub(super) artifact: String,
    pub(super) filename: Option<String>,
}

/// A run that this worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) run: String,
    /// The fencing number.
    pub(super) number: u64,
    pub(super) conversation: String,
    pub(super) query: String,
    pub(super) files: Vec<InputFile>,
    pub(super) mode: Mode,
    pub(super) paused: bool,
    /// True if an earlier process of this worker may have started the run.
    pub(super) resumed: bool,
}

impl Assignment {
    /// The run in the response to a heartbeat; `None` if there is none.
    pub(super) fn from_heartbeat(assigned: &Value) -> Option<Self> {
        // A control plane without leases sends no number.
        Self::read(assigned, assigned["assignment"].as_u64().unwrap_or(1), false)
    }

    /// A run in the list of this worker's runs.
    pub(super) fn resumed(view: &Value) -> Option<Self> {
        Self::read(view, view["worker"]["assignment"].as_u64().unwrap_or(1), true)
    }

    /// The id of the turn that executes the run: the same after every restart of the worker, and
    /// different for every assignment.
    pub(super) fn turn(&self) -> String {
        format!("run-{}-{}", self.run, self.number)
    }

    fn read(run: &Value, number: u64, resumed: bool) -> Option<Self> {
        let text = |name: &str| run[name].as_str().map(String::from);
        let file = |file: &Value| {
            Some(InputFile {
                artifact: file["artifact_id"].as_str()?.to_owned(),
                filename: file["filename"].as_str().map(String::from),
            })
        };
        Some(Self {
            run: text("run_id")?,
            number,
            conversation: text("conversation_ref")?,
            query: text("query")?,
            files: run["files"].as_array().into_iter().flatten().filter_map(file).collect(),
            mode: Mode::named(run["control_mode"].as_str().unwrap_or_default()),
            paused: run["status"] == "paused",
            resumed,
        })
    }
}
