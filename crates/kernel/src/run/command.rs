//! What may be asked of a run.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::id::ControlId;
use crate::run::state::{ControlAction, RunFile, Worker};
use crate::time::Time;

/// A run that is to begin.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRun {
    /// The queue.
    pub workspace: String,
    /// The agent, as the client names it.
    pub agent: Option<String>,
    /// The task.
    pub query: String,
    /// The person who asks.
    pub requested_by: Option<String>,
    /// Files to begin with.
    pub files: Vec<RunFile>,
    /// The client's own notes.
    pub metadata: Map<String, Value>,
    /// The conversation to work in; a new one if not given.
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

/// Something that happened in a run's conversation.
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
    /// The turn in which it happened, if it is named.
    pub turn: Option<String>,
    /// A key under which a repetition of the request is recognised.
    pub key: Option<String>,
}

/// What may be asked of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunCommand {
    /// A worker takes the run from the queue.
    Assign {
        /// The worker.
        worker: Worker,
    },
    /// The worker has begun a turn.
    Dispatch {
        /// The worker.
        by: Reporter,
        /// The user that the worker's conversations belong to.
        user: String,
        /// The turn.
        turn: String,
        /// The conversation, if it is another one than planned.
        conversation: Option<String>,
    },
    /// A person gives a command.
    Control {
        /// What to do.
        action: ControlAction,
        /// The person.
        requested_by: Option<String>,
        /// True if the command is for many runs.
        bulk: bool,
    },
    /// A worker shows that it is at work on this run.
    Heartbeat {
        /// The worker.
        worker: Worker,
    },
    /// Something happened in the run's conversation.
    Report(RunReport),
    /// The lease of the worker may be over.
    Expire {
        /// The time of the worker's last heartbeat.
        heartbeat: Time,
        /// How long a worker may be silent.
        grace: Duration,
        /// How many workers may be lost before the run fails.
        most_losses: u32,
    },
}
