//! Commands for runs.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::id::ControlId;
use crate::run::state::{ControlAction, RunFile, Worker};
use crate::time::Time;

/// A run to create.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The queue.
    pub workspace: String,
    /// The agent, as the client names it.
    pub agent: Option<String>,
    /// The task.
    pub query: String,
    /// The person who created the run.
    pub requested_by: Option<String>,
    /// Input files.
    pub files: Vec<RunFile>,
    /// The client's own metadata.
    pub metadata: Map<String, Value>,
    /// The conversation to work in; a new one if `None`.
    pub conversation: Option<String>,
}

/// How a run ended, as its worker reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The task is done.
    Completed,
    /// There was an error.
    Failed,
}

/// The worker that sends a report. A worker that lost the run is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reporter {
    /// The id of the worker.
    pub worker: String,
    /// The assignment that the worker acts for, if it names one.
    pub assignment: Option<u64>,
}

/// An event of the run's conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The kind of event, in the words of the protocol.
    pub kind: String,
    /// Where the event comes from.
    pub source: String,
    /// The event.
    pub payload: Map<String, Value>,
    /// The outcome, if the event ends the run.
    pub end: Option<RunEnd>,
    /// Commands that took effect.
    pub applied: Vec<ControlId>,
    /// The worker that reports, if it identifies itself.
    pub by: Option<Reporter>,
    /// The turn of the event, if it is named.
    pub turn: Option<String>,
    /// The idempotency key of the request.
    pub key: Option<String>,
}

/// A command for a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    /// A worker takes the run from the queue.
    Assign {
        /// The worker.
        worker: Worker,
    },
    /// The worker has started a turn.
    Dispatch {
        /// The worker.
        by: Reporter,
        /// The user that the worker's conversations belong to.
        user: String,
        /// The turn.
        turn: String,
        /// The conversation, if it differs from the planned one.
        conversation: Option<String>,
    },
    /// A person sends a control command.
    Control {
        /// What to do.
        action: ControlAction,
        /// The person.
        requested_by: Option<String>,
        /// True if the command was sent to many runs.
        bulk: bool,
    },
    /// A worker reports that it works on this run.
    Heartbeat {
        /// The worker.
        worker: Worker,
    },
    /// An event of the run's conversation was reported.
    Report(RunReport),
    /// The lease of the worker may have expired.
    Expire {
        /// The time of the worker's last heartbeat.
        heartbeat: Time,
        /// Maximum time without a heartbeat.
        grace: Duration,
        /// Maximum number of lost workers before the run fails.
        most_losses: u32,
    },
}
