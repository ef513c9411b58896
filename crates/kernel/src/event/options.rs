//! What a client asks of one turn.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::CallId;
use crate::model::{Account, ModelRef, Sampling};
use crate::policy::Limits;
use crate::toolset::Toolset;

/// What a client asks of one turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnOptions {
    /// A model for this turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// How to answer.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether the model may call tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: ToolUse,
    /// What needs a person's word.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asking: ApprovalMode,
    /// How long a question stands before it counts as "no", in milliseconds; policy may be stricter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// Whether it begins by itself once the turns before it are over.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queued: bool,
    /// The client's own name for the message; one that it sends again under the same name is
    /// answered once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How the front end words the message for models, where that is other than what the person
    /// said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<String>,
    /// Whether it was said elsewhere, and nothing is to be answered.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recalled: bool,
    /// How much it may take, where that is less than policy allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// What few turns have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Box<RareOptions>>,
}

/// What few turns have, apart so that the others are small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RareOptions {
    /// The account that pays for model calls; the daemon's own if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// What the front end keeps with it; models are not told.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub aside: Value,
    /// The call that it is the result of, where it was said elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_of: Option<CallId>,
    /// What the session runs with from this turn on, where it had to wait for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Arc<Setup>>,
}

/// What a session runs with from a turn on. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Standing instructions of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The tools that models are offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolset: Option<Toolset>,
    /// The folder in which tools work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
}

impl RareOptions {
    /// Nothing if there is nothing in it.
    pub fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// How much a turn may take at most, where that is less than policy allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Time, not counting what it waits for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl Budget {
    /// The smaller of two, by each measure.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            steps: least(self.steps, other.steps),
            tokens: least(self.tokens, other.tokens),
            time_ms: least(self.time_ms, other.time_ms),
        }
    }

    /// What policy allows, or less.
    pub(crate) fn limits(self, policy: &Limits) -> Limits {
        let time = self.time_ms.map_or(policy.time, Duration::from_millis);
        Limits {
            steps: self.steps.map_or(policy.steps, |steps| steps.min(policy.steps)),
            tokens: self.tokens.map_or(policy.tokens, |tokens| tokens.min(policy.tokens)),
            time: time.min(policy.time),
            ..policy.clone()
        }
    }
}

/// Whether the model may call tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUse {
    /// The model may call tools.
    #[default]
    Offered,
    /// The model answers in words alone.
    Withheld,
}

/// What needs a person's word, beside what policy says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// What policy says.
    #[default]
    Policy,
    /// Everything that does more than look.
    Strict,
    /// Nothing that policy asks about only for its kind or tool. What a rule asks about is asked
    /// about all the same, and so is what should not be done at all.
    Waived,
    /// What policy says, but nobody can be asked: what would need a person's word is refused.
    Unattended,
}

impl TurnOptions {
    /// The account that pays for model calls; none if the daemon's own does.
    pub fn account(&self) -> Option<&Account> {
        self.more.as_ref()?.account.as_ref()
    }

    /// The call that it is the result of, where it was said elsewhere.
    pub fn result_of(&self) -> Option<&CallId> {
        self.more.as_ref()?.result_of.as_ref()
    }

    /// What the front end keeps with it under a name.
    pub fn aside(&self, name: &str) -> Option<&Value> {
        self.more.as_ref()?.aside.get(name)
    }

    /// What the session runs with from this turn on, where it had to wait for its turn.
    pub(crate) fn setup(&self) -> Option<&Arc<Setup>> {
        self.more.as_ref()?.setup.as_ref()
    }

    /// The same options with another setup, or with none.
    #[must_use]
    pub(crate) fn with_setup(mut self, setup: Option<Arc<Setup>>) -> Self {
        let more = self.more.take().map(|more| *more).unwrap_or_default();
        self.more = RareOptions { setup, ..more }.unless_empty();
        self
    }

    pub(crate) fn is_default(&self) -> bool {
        is_default(self)
    }

    /// How long a question stands, given how long policy lets it.
    pub(crate) fn approval_timeout(&self, policy: Option<Duration>) -> Option<Duration> {
        let own = self.answer_within_ms.map(Duration::from_millis);
        [own, policy].into_iter().flatten().min()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
