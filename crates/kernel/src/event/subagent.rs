//! Sessions that a call begins for a task of its own.

use serde::{Deserialize, Serialize};

use serde_json::Value;

use crate::event::Answer;
use crate::id::CallId;
use crate::model::{ModelRef, Usage};
use crate::time::Time;
use crate::tool::Assessment;

/// What a session hears of one that works for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubagentNews {
    /// It began.
    Spawned {
        /// What it is to do.
        task: String,
        /// The model, where one was chosen for it.
        model: Option<ModelRef>,
    },
    /// It works: so many model calls so far, and what it does now.
    Progressed {
        /// Model calls.
        steps: u64,
        /// What it does.
        status: String,
    },
    /// It, or one that works for it, needs a person's word, which may be given here as well.
    Asked {
        /// The call that waits.
        call: CallId,
        /// Its tool.
        tool: String,
        /// Its arguments.
        input: Value,
        /// What a person is shown.
        assessment: Box<Assessment>,
        /// When it counts as "no".
        expires: Option<Time>,
    },
    /// That call waits no more.
    Settled {
        /// The call.
        call: CallId,
        /// The word, if one was given.
        answer: Option<Answer>,
    },
    /// It is done, and says this.
    Completed {
        /// What it says, or why it says nothing.
        result: String,
        /// Whether it did what it should.
        ok: bool,
        /// What it cost.
        usage: Usage,
    },
}
