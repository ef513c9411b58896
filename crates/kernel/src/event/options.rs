//! Options of a turn.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::CallId;
use crate::model::{Account, ModelRef, Sampling};
use crate::policy::Limits;
use crate::toolset::Toolset;

/// Options of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnOptions {
    /// The model for this turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Sampling parameters.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether the model may call tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub tools: ToolUse,
    /// Which calls need approval.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asking: ApprovalMode,
    /// Milliseconds after which an approval request counts as denied; policy may set a
    /// shorter time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_within_ms: Option<u64>,
    /// True if the turn is queued: it starts automatically after the turns before it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub queued: bool,
    /// The client's idempotency key; a message that is sent again with the same key is
    /// added once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The text that models read, if it differs from the user's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<String>,
    /// True if the message was imported and starts no turn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recalled: bool,
    /// Limits below those of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Box<Budget>>,
    /// Options that few turns have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<Box<RareOptions>>,
}

/// Options that few turns have, boxed so that the others stay small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RareOptions {
    /// The account that pays for model calls; the daemon's own if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
    /// The front end's own data; not sent to models.
    #[serde(default, rename = "aside", skip_serializing_if = "Value::is_null")]
    pub front_end_data: Value,
    /// For an imported tool result: the call that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_of: Option<CallId>,
    /// For a queued turn: changes to the session's setup that apply when it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<Arc<Setup>>,
}

/// Changes to a session's setup that apply from a turn on. Fields that are `None` stay
/// unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The client's system prompt.
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
    /// `None` if all fields have their defaults.
    pub fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Limits of a turn below those of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Maximum number of model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
    /// Maximum number of tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Maximum time in milliseconds, without the time spent waiting for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl Budget {
    /// The smaller of both limits, field by field.
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

    /// The policy's limits, reduced to this budget.
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
    /// The model responds with text alone.
    Withheld,
}

/// Which calls need approval, in addition to the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// The calls that the policy names.
    #[default]
    Policy,
    /// All calls that do more than read.
    Strict,
    /// No calls that the policy names only by kind or tool. Calls that a rule names, and
    /// critical ones, still need approval.
    Waived,
    /// The calls that the policy names, but no person can be asked: they are denied.
    Unattended,
}

impl TurnOptions {
    /// The account that pays for model calls; `None` for the daemon's own.
    pub fn account(&self) -> Option<&Account> {
        self.more.as_ref()?.account.as_ref()
    }

    /// For an imported tool result: the call that it belongs to.
    pub fn result_of(&self) -> Option<&CallId> {
        self.more.as_ref()?.result_of.as_ref()
    }

    /// The front end's own data under a name.
    pub fn front_end_data(&self, name: &str) -> Option<&Value> {
        self.more.as_ref()?.front_end_data.get(name)
    }

    /// For a queued turn: changes to the session's setup that apply when it starts.
    pub(crate) fn setup(&self) -> Option<&Arc<Setup>> {
        self.more.as_ref()?.setup.as_ref()
    }

    /// The same options with this setup.
    #[must_use]
    pub(crate) fn with_setup(mut self, setup: Option<Arc<Setup>>) -> Self {
        let more = self.more.take().map(|more| *more).unwrap_or_default();
        self.more = RareOptions { setup, ..more }.unless_empty();
        self
    }

    pub(crate) fn is_default(&self) -> bool {
        is_default(self)
    }

    /// How long an approval request stays open, given the policy's limit.
    pub(crate) fn approval_timeout(&self, policy: Option<Duration>) -> Option<Duration> {
        let own = self.answer_within_ms.map(Duration::from_millis);
        [own, policy].into_iter().flatten().min()
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
