//! The rules of a session: approvals, reviews, verification and limits.

mod pattern;
mod rule;

use std::sync::Arc;
use std::time::Duration;

use crate::event::Budget;
use crate::model::ModelRef;
use crate::tool::{CallSubject, Placement, ToolKind, ToolSpec};

pub use pattern::Pattern;
use rule::RuleMatch;
pub use rule::{Action, Rule};

/// Everything a decision looks up that is not in the journal.
///
/// Decisions are recorded as events, so replay never needs the rules.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Which calls need approval.
    pub approval: ApprovalPolicy,
    /// Whether file changes are reviewed before they are made.
    pub review: ReviewMode,
    /// Tokens of the workspace description; none if 0.
    pub context_tokens: u64,
    /// True if the facts of summaries are written to memory.
    pub save_memory: bool,
    /// Verification after changes.
    pub verify: VerifyPolicy,
    /// Limits of a turn.
    pub limits: Limits,
    /// What happens to interrupted turns.
    pub recovery: Recovery,
    /// How long a client that runs a call may be disconnected before it loses the call.
    pub client_grace: Duration,
    /// Limits of subagents.
    pub subagents: SubagentLimits,
    /// The daemon's tools, in the order in which they are offered.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The model for sessions that name none.
    pub default_model: ModelRef,
}

impl Rules {
    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Decides a call; `subject` is known once the call was assessed.
    pub fn verdict(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> Verdict {
        let verdict = self.approval.verdict(tool, subject);
        match (&verdict, self.review, tool.kind) {
            (Verdict::Allow, ReviewMode::Request, ToolKind::Write) => Verdict::Ask,
            (Verdict::Allow, ReviewMode::Auto, ToolKind::Write) if subject.is_none() => {
                Verdict::Assess
            }
            _ => verdict,
        }
    }

    /// True if a rule or the review mode names the call, not only its kind or tool.
    pub(crate) fn requires_approval(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> bool {
        let asks =
            |rule: &Rule| rule.action == Action::Ask && rule.fits(tool, subject) == RuleMatch::Yes;
        let review = self.review == ReviewMode::Request && tool.kind == ToolKind::Write;
        review || self.approval.rules.iter().any(asks)
    }
}

/// Which calls need approval.
#[derive(Clone, Debug)]
pub struct ApprovalPolicy {
    /// Of the rules that match a call the strictest decides. Without one, `kinds` and
    /// `tools` decide.
    pub rules: Vec<Rule>,
    /// Kinds of tools that need approval.
    pub kinds: Vec<ToolKind>,
    /// Names of tools that need approval.
    pub tools: Vec<String>,
    /// What a denial means for the turn.
    pub on_deny: OnDeny,
    /// How long an approval request stays open before it counts as denied; unlimited if
    /// `None`.
    pub expires: Option<Duration>,
}

/// What a denial means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeny {
    /// The turn continues; the model reads the denial.
    Continue,
    /// The turn ends as failed.
    Fail,
}

/// The review of file changes before they are made, whatever else the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewMode {
    /// No review.
    Off,
    /// By a person, as an approval.
    Request,
    /// By a model; by a person if that fails.
    Auto,
}

/// The policy's decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call is refused, for this reason.
    Refuse(String),
    /// The call must be assessed first.
    Assess,
}

impl ApprovalPolicy {
    /// Decides a call of this tool.
    pub fn verdict(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> Verdict {
        let fits = |fit| self.rules.iter().filter(move |rule| rule.fits(tool, subject) == fit);
        let strictest = fits(RuleMatch::Yes).max_by_key(|rule| rule.action);
        match strictest {
            Some(rule) if rule.action == Action::Refuse => return rule.verdict(),
            _ if fits(RuleMatch::Unknown).next().is_some() => return Verdict::Assess,
            Some(rule) => return rule.verdict(),
            None => {}
        }
        // A client asks its own user about the calls that it runs, unless the tool is named here.
        let kind = self.kinds.contains(&tool.kind) && tool.placement == Placement::Daemon;
        if kind || self.tools.contains(&tool.name) { Verdict::Ask } else { Verdict::Allow }
    }
}

/// Verification after changes.
#[derive(Clone, Debug)]
pub struct VerifyPolicy {
    /// True if a turn that changed the workspace is verified before it ends.
    pub auto: bool,
    /// The tool that verifies.
    pub tool: String,
    /// How often the verification of a turn may fail.
    pub attempts: u32,
}

/// Limits of a turn.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of model calls.
    pub steps: u32,
    /// Maximum number of tokens, read and written.
    pub tokens: u64,
    /// Maximum time, without the time spent waiting for people.
    pub time: Duration,
    /// Maximum number of calls that were skipped as repetitions.
    pub repeats: u32,
    /// The share of the context window, in percent, at which history is compacted.
    pub compact_at_percent: u64,
    /// Context window in tokens of models for which it is not known.
    pub assumed_window: u64,
}

/// Limits of subagents.
#[derive(Clone, Copy, Debug)]
pub struct SubagentLimits {
    /// Maximum nesting: at 1 subagents cannot start subagents, at 0 there are no subagents.
    pub depth: u32,
    /// Maximum number of concurrent subagents of a session.
    pub at_once: usize,
    /// Limits of each subagent.
    pub budget: Budget,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8, budget: Budget::default() }
    }
}

/// What happens to a turn that a restart interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The turn continues automatically.
    Continue,
    /// The turn waits for a client's decision.
    Ask,
    /// The turn ends as interrupted.
    Leave,
}
