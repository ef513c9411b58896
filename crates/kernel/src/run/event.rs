//! What happened to a run, and how it is written down.
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

/// An event of a run in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// The number, from 1 on without a gap.
    pub seq: Seq,
    /// When the event was decided.
    pub at: Time,
    /// What happened.
    pub event: RunEvent,
}

/// What happened to a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// The run is in the queue of its workspace.
    Created(RunDetails),
    /// A worker has the run.
    Assigned { worker: Worker, assignment: u64 },
    /// The worker has begun a turn for the run.
    Dispatched {
        worker: String,
        user: String,
        turn: String,
        conversation: String,
        status: RunStatus,
    },
    /// A person gave a command; `bulk` if the command was for many runs.
    Controlled {
        control: Control,
        status: RunStatus,
        mode: ControlMode,
        #[serde(default)]
        bulk: bool,
    },
    /// A worker showed that it is at work on this run.
    Heartbeat { worker: Worker, assignment: u64, status: RunStatus },
    /// Something was reported from the run's conversation.
    Reported {
        kind: String,
        source: String,
        payload: Map<String, Value>,
        status: RunStatus,
        /// Commands that took effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        applied: Vec<crate::id::ControlId>,
        /// The key under which a repetition is recognised.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The worker's heartbeats stopped, and the worker lost the run.
    Lost { worker: String, assignment: u64, losses: u32, status: RunStatus },
}

/// Writes an event; the version beside it is [`codec::VERSION`].
pub fn encode_event(event: &RunEvent) -> Vec<u8> {
    serde_json::to_vec(event).expect("events have string keys and no failing serializers")
}

/// Reads an event. Fails if the bytes are damaged or a newer version wrote them.
pub fn decode_event(version: u16, bytes: &[u8]) -> Result<RunEvent, codec::DecodeError> {
    match version {
        0..=codec::VERSION => Ok(serde_json::from_slice(bytes)?),
        newer => Err(codec::DecodeError::Newer(newer)),
    }
}
