//! Reports of subagents: sessions that a tool call starts for a task.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::approval_id::ApprovalId;
use crate::event::{ApprovalDecision, TurnOptions};
use crate::model::{ModelRef, Usage};
use crate::time::Time;
use crate::tool::Assessment;
use crate::toolset::Toolset;

/// What a subagent reports to the session whose call started it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentUpdate {
    /// The subagent started.
    Spawned {
        /// The task.
        task: String,
        /// The model, if one was chosen.
        model: Option<ModelRef>,
        /// The tools and limits it was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegation: Option<Box<Delegation>>,
    },
    /// The subagent works: number of model calls so far and its status.
    Progressed {
        /// Model calls.
        steps: u64,
        /// What it does.
        status: String,
    },
    /// The subagent, or one of its own subagents, waits for an approval, which can be
    /// answered here, too.
    Asked {
        /// The approval request.
        call: ApprovalId,
        /// The tool.
        tool: String,
        /// The arguments.
        input: Value,
        /// The assessment that a person is shown.
        assessment: Box<Assessment>,
        /// When the request counts as denied.
        expires: Option<Time>,
    },
    /// An approval request of the subagent is closed.
    Settled {
        /// The approval request.
        call: ApprovalId,
        /// The decision, if there was one.
        answer: Option<ApprovalDecision>,
    },
    /// The subagent ended.
    Completed {
        /// The final answer, or why there is none.
        result: String,
        /// True if the task succeeded.
        ok: bool,
        /// Tokens of the subagent.
        usage: Usage,
    },
}

/// The tools and limits of a subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// Number of sessions above it.
    pub depth: u32,
    /// The tools it may use.
    pub toolset: Toolset,
    /// The options of its turn.
    pub options: TurnOptions,
}
