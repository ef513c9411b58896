//! Rules that match calls by kind, tool, path or command.

use crate::policy::Verdict;
use crate::policy::pattern::Pattern;
use crate::tool::{CallSubject, ToolKind, ToolSpec};

/// What to do with matching calls. Fields that are `None` match every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Matches tools of this kind.
    pub kind: Option<ToolKind>,
    /// Matches this tool.
    pub tool: Option<String>,
    /// Matches calls that access such paths.
    pub path: Option<Pattern>,
    /// Matches calls that run such commands.
    pub command: Option<Pattern>,
    /// What to do.
    pub action: Action,
    /// The reason, for the model and for people.
    pub reason: Option<String>,
}

/// What a rule does with a call, the strictest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// The call may run.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call is refused.
    Refuse,
}

/// Whether a rule matches a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleMatch {
    Yes,
    No,
    /// The call must be assessed first.
    Unknown,
}

impl Rule {
    pub(super) fn verdict(&self) -> Verdict {
        match (self.action, &self.reason) {
            (Action::Allow, _) => Verdict::Allow,
            (Action::Ask, _) => Verdict::Ask,
            (Action::Refuse, Some(reason)) => {
                Verdict::Refuse(format!("refused by policy: {reason}"))
            }
            (Action::Refuse, None) => Verdict::Refuse("refused by policy".into()),
        }
    }

    /// Whether the rule matches this call.
    pub(super) fn fits(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> RuleMatch {
        let named = self.kind.is_none_or(|kind| kind == tool.kind)
            && self.tool.as_ref().is_none_or(|name| *name == tool.name);
        let looks = self.path.is_some() || self.command.is_some();
        match (named, looks, subject) {
            (false, _, _) => RuleMatch::No,
            (true, false, _) => RuleMatch::Yes,
            (true, true, None) => RuleMatch::Unknown,
            (true, true, Some(subject)) if self.is_about(subject) => RuleMatch::Yes,
            (true, true, Some(_)) => RuleMatch::No,
        }
    }

    fn is_about(&self, subject: &CallSubject) -> bool {
        let covers = |pattern: &Option<Pattern>, texts: &[String]| match pattern {
            None => true,
            Some(pattern) => self.covers(pattern, texts),
        };
        let certain = self.action != Action::Allow || !subject.opaque;
        certain && covers(&self.path, &subject.paths) && covers(&self.command, &subject.commands)
    }

    /// A call is allowed only if all its parts match; one matching part is enough to ask or
    /// refuse.
    fn covers(&self, pattern: &Pattern, texts: &[String]) -> bool {
        let matches = |text: &String| pattern.matches(text);
        match self.action {
            Action::Allow => !texts.is_empty() && texts.iter().all(matches),
            Action::Ask | Action::Refuse => texts.iter().any(matches),
        }
    }
}
