//! Sessions that a call begins for a task of its own.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::approval_id::ApprovalId;
use crate::event::{ApprovalDecision, TurnOptions};
use crate::model::{ModelRef, Usage};
use crate::time::Time;
use crate::tool::Assessment;
use crate::toolset::Toolset;

/// What a session hears of one that works for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentUpdate {
    /// A subagent began.
    Spawned {
        /// What it is to do.
        task: String,
        /// The model, where one was chosen for it.
        model: Option<ModelRef>,
        /// What it was given to work with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegation: Option<Box<Delegation>>,
    },
    /// A subagent works: its model calls so far, and what it does now.
    Progressed {
        /// Model calls.
        steps: u64,
        /// What it does.
        status: String,
    },
    /// A subagent, or one below it, waits for a person's answer, which may be given here as well.
    Asked {
        /// What it asks.
        call: ApprovalId,
        /// The tool.
        tool: String,
        /// The arguments.
        input: Value,
        /// What a person is shown.
        assessment: Box<Assessment>,
        /// When it counts as "no".
        expires: Option<Time>,
    },
    /// A question of the subagent is not open any more.
    Settled {
        /// What was asked.
        call: ApprovalId,
        /// The word, if one was given.
        answer: Option<ApprovalDecision>,
    },
    /// A subagent completed, with this result.
    Completed {
        /// What it says, or why it says nothing.
        result: String,
        /// Whether it did what it should.
        ok: bool,
        /// What it cost.
        usage: Usage,
    },
}

/// What a session was given when it was begun for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// How many sessions are above it.
    pub depth: u32,
    /// The tools that it may use.
    pub toolset: Toolset,
    /// How it works on its task.
    pub options: TurnOptions,
}
