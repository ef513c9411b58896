//! Sessions that a call begins for a task of its own.

use serde::{Deserialize, Serialize};

use crate::model::{ModelRef, Usage};

/// What a session hears of one that works for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
