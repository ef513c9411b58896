//! The summary of a session that lists show. Written with every append that holds more than
//! text, so it is small.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::Seq;
use crate::id::{SessionId, TurnId};
use crate::model::{ModelRef, Usage};
use crate::time::Time;

/// The state of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The session is working or ready for the next message.
    #[default]
    Active,
    /// A call waits for a person's approval.
    WaitingApproval,
    /// The session was closed.
    Completed,
    /// The last turn failed.
    Failed,
    /// The last turn was cancelled.
    Cancelled,
}

/// The point at which a session was forked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// The session it was forked from.
    pub parent: SessionId,
    /// The last shared event.
    pub at: Seq,
}

/// The summary of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// When the session was created.
    pub created: Time,
    /// The point at which the session was forked, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Fork>,
    /// The model, if a client chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The number of the last event.
    #[serde(default)]
    pub head: Seq,
    /// When the last event happened.
    pub updated: Time,
    /// The current status.
    pub status: Status,
    /// The folder in which tools work.
    pub workspace: PathBuf,
    /// Labels set by front ends.
    pub labels: BTreeMap<String, String>,
    /// The beginning of the first user message.
    #[serde(default)]
    pub title: String,
    /// The beginning of the newest user message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_prompt: String,
    /// The beginning of the newest model message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_answer: String,
    /// Number of user and model messages.
    #[serde(default)]
    pub messages: u64,
    /// Tokens of all turns.
    #[serde(default)]
    pub tokens: u64,
    /// Tokens of all turns, by kind.
    #[serde(default)]
    pub usage: Usage,
    /// Tokens that the last model call read.
    #[serde(default)]
    pub context: u64,
    /// The newest turn.
    pub last_turn: Option<TurnId>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// True if the session has unfinished work and must be recovered when the daemon
    /// starts.
    pub open: bool,
}
