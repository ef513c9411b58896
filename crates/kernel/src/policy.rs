//! The rules a session lives under: what needs approval, what is verified, what is too much.

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
/// What it led to is: decisions are recorded as events, so replay never needs the rules.
#[derive(Clone, Debug)]
pub struct Rules {
    /// What needs a person's word.
    pub approval: ApprovalPolicy,
    /// The review of changes before they are made.
    pub review: ReviewMode,
    /// How many tokens a model is told of the workspace; nothing if 0.
    pub context_tokens: u64,
    /// Whether what a summary names as worth keeping is written to memory.
    pub save_memory: bool,
    /// What is checked after a change.
    pub verify: VerifyPolicy,
    /// How much one turn may take.
    pub limits: Limits,
    /// What happens to a turn that the daemon's death cut off.
    pub recovery: Recovery,
    /// How long a client that runs a call may be disconnected before it loses the call.
    pub client_grace: Duration,
    /// How many sessions may work for one another.
    pub subagents: SubagentLimits,
    /// The daemon's tools, in the order they are offered.
    pub tools: Vec<Arc<ToolSpec>>,
    /// The model for sessions that name none.
    pub default_model: ModelRef,
}

impl Rules {
    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Judges a call, of which `subject` is known once it was looked at.
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

    /// Whether a person is asked because somebody wrote down that it must be so, not just for the
    /// call's kind or tool.
    pub(crate) fn requires_approval(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> bool {
        let asks =
            |rule: &Rule| rule.action == Action::Ask && rule.fits(tool, subject) == RuleMatch::Yes;
        let review = self.review == ReviewMode::Request && tool.kind == ToolKind::Write;
        review || self.approval.rules.iter().any(asks)
    }
}

/// What needs a person's word.
#[derive(Clone, Debug)]
pub struct ApprovalPolicy {
    /// Of those that are about a call the strictest decides; the rest of this, where none is.
    pub rules: Vec<Rule>,
    /// Kinds of tools that do.
    pub kinds: Vec<ToolKind>,
    /// Tools that do, by name.
    pub tools: Vec<String>,
    /// What a "no" means for the turn.
    pub on_deny: OnDeny,
    /// How long a question stands before it counts as "no"; for ever if not given.
    pub expires: Option<Duration>,
}

/// What a "no" means for the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDeny {
    /// The model is told and goes on.
    Continue,
    /// The turn ends as failed.
    Fail,
}

/// The review of a file change before it is made, whatever else the policy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewMode {
    /// No review.
    Off,
    /// A person, who is asked as for an approval.
    Request,
    /// The model, in a call of its own; a person where it cannot.
    Auto,
}

/// What policy says of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// A person is asked.
    Ask,
    /// The call does not run, for this reason.
    Refuse(String),
    /// The call must be assessed first.
    Assess,
}

impl ApprovalPolicy {
    /// Judges a call of this tool.
    pub fn verdict(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> Verdict {
        let fits = |fit| self.rules.iter().filter(move |rule| rule.fits(tool, subject) == fit);
        let strictest = fits(RuleMatch::Yes).max_by_key(|rule| rule.action);
        match strictest {
            Some(rule) if rule.action == Action::Refuse => return rule.verdict(),
            _ if fits(RuleMatch::Unknown).next().is_some() => return Verdict::Assess,
            Some(rule) => return rule.verdict(),
            None => {}
        }
        // What a client runs it asks its own user about, unless the tool is named here.
        let kind = self.kinds.contains(&tool.kind) && tool.placement == Placement::Daemon;
        if kind || self.tools.contains(&tool.name) { Verdict::Ask } else { Verdict::Allow }
    }
}

/// What is checked after a change.
#[derive(Clone, Debug)]
pub struct VerifyPolicy {
    /// Whether a turn that changed the workspace is verified before it ends.
    pub auto: bool,
    /// The tool that verifies.
    pub tool: String,
    /// How often a turn may try to pass.
    pub attempts: u32,
}

/// How much one turn may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Model calls.
    pub steps: u32,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Time, not counting what it waits for people.
    pub time: Duration,
    /// Calls that were skipped because they repeat an earlier one.
    pub repeats: u32,
    /// The share of the context window, in percent, at which history is compacted.
    pub compact_at_percent: u64,
    /// Tokens that a model is taken to read at once where that is not known.
    pub assumed_window: u64,
}

/// How many sessions may work for one another.
#[derive(Clone, Copy, Debug)]
pub struct SubagentLimits {
    /// How deep subagents may have subagents: at 1 they have none, at 0 nobody has.
    pub depth: u32,
    /// How many of a session's subagents may work at once.
    pub at_once: usize,
    /// What each may take at most.
    pub budget: Budget,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8, budget: Budget::default() }
    }
}

/// What happens to a turn that the daemon's death cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// The turn goes on by itself.
    Continue,
    /// The turn waits for a client's decision.
    Ask,
    /// The turn ends as interrupted.
    Leave,
}
