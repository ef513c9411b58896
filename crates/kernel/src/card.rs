//! A session at a glance, as lists show it; written with every append.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TurnId};
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

/// A session at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Its id.
    pub id: SessionId,
    /// When it began.
    pub created: Time,
    /// When something last happened.
    pub updated: Time,
    /// Where it stands.
    pub status: Status,
    /// Where its tools work.
    pub workspace: PathBuf,
    /// Standing instructions of the client.
    pub system_prompt: Option<String>,
    /// Front ends' own notes.
    pub labels: BTreeMap<String, String>,
    /// What it is about: the first words of the person.
    #[serde(default)]
    pub title: String,
    /// How much was said by people and models.
    #[serde(default)]
    pub messages: u64,
    /// Tokens of all turns.
    #[serde(default)]
    pub tokens: u64,
    /// The newest turn.
    pub last_turn: Option<TurnId>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// Whether somebody must look after it when the daemon starts.
    pub open: bool,
}
