//! Events of runs and their encoding.
//!
//! The serialized form of [`RunEvent`] is the format of a run's journal: fields may be added with a
//! default, never renamed or removed. Events carry the status that they led to, so that each of them
//! can be shown without those before it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::codec;
use crate::event::Seq;
use crate::run::state::{Control, ControlMode, RunDetails, RunStatus, Worker};
use crate::time::Time;

/// An event of a run with its number and time.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The number, from 1 on without a gap.
    pub seq: Seq,
    /// When the event was decided.
    pub at: Time,
    /// What happened.
    pub event: RunEvent,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// The run is in the queue of its workspace.
    Created(RunDetails),
    /// A worker has the run.
    Assigned { worker: Worker, assignment: u64 },
    /// The worker has started a turn for the run.
    Dispatched {
        worker: String,
        user: String,
        turn: String,
        conversation: String,
        status: RunStatus,
    },
    /// A person sent a control command; `bulk` if it was sent to many runs.
    Controlled {
        control: Control,
        status: RunStatus,
        mode: ControlMode,
        #[serde(default)]
        bulk: bool,
    },
    /// A worker reported that it works on this run.
    Heartbeat { worker: Worker, assignment: u64, status: RunStatus },
    /// An event of the run's conversation was reported.
    Reported {
        kind: String,
        source: String,
        payload: Map<String, Value>,
        status: RunStatus,
        /// Commands that took effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        applied: Vec<crate::id::ControlId>,
        /// The idempotency key of the report.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The worker's heartbeats stopped, so the worker lost the run.
    Lost { worker: String, assignment: u64, losses: u32, status: RunStatus },
}

/// Encodes an event; it is stored next to [`codec::VERSION`].
pub fn encode_event(event: &RunEvent) -> Vec<u8> {
    serde_json::to_vec(event).expect("events have string keys and no failing serializers")
}

/// Decodes an event. Fails if the bytes are damaged or a newer version wrote them.
pub fn decode_event(version: u16, bytes: &[u8]) -> Result<RunEvent, codec::DecodeError> {
    match version {
        0..=codec::VERSION => Ok(serde_json::from_slice(bytes)?),
        newer => Err(codec::DecodeError::Newer(newer)),
    }
}
