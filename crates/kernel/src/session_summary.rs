//! A session at a glance, as lists show it. Small: written with every append that is more than text.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::event::Seq;
use crate::id::{SessionId, TurnId};
use crate::model::{ModelRef, Usage};
use crate::time::Time;

/// Where a session stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Working, or ready to.
    #[default]
    Active,
    /// A person's word is needed.
    WaitingApproval,
    /// Done with.
    Completed,
    /// The last turn failed.
    Failed,
    /// The last turn was cancelled.
    Cancelled,
}

/// Where a session branched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    /// From which session.
    pub parent: SessionId,
    /// After which of its events.
    pub at: Seq,
}

/// A session at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// When it began.
    pub created: Time,
    /// Where it branched off, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked: Option<Fork>,
    /// The model, where a client chose one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// The last event in it.
    #[serde(default)]
    pub head: Seq,
    /// When something last happened.
    pub updated: Time,
    /// Where it stands.
    pub status: Status,
    /// Where its tools work.
    pub workspace: PathBuf,
    /// Front ends' own notes.
    pub labels: BTreeMap<String, String>,
    /// What it is about: the first words of the person.
    #[serde(default)]
    pub title: String,
    /// The beginning of the newest message of a person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_prompt: String,
    /// The beginning of the newest message of a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_answer: String,
    /// How much was said by people and models.
    #[serde(default)]
    pub messages: u64,
    /// Tokens of all turns.
    #[serde(default)]
    pub tokens: u64,
    /// The same, by what they were.
    #[serde(default)]
    pub usage: Usage,
    /// Tokens that the last model call read.
    #[serde(default)]
    pub context: u64,
    /// The newest turn.
    pub last_turn: Option<TurnId>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// Whether somebody must look after it when the daemon starts.
    pub open: bool,
}
