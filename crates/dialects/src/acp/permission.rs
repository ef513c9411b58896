//! Permission requests to the user of the editor.

use std::path::Path;

use quintet_kernel::command::Approve;
use quintet_kernel::event::{ApprovalDecision, DecidedBy, RememberScope};
use quintet_kernel::question::{Question, QuestionChoice};
use quintet_kernel::tool::Assessment;
use quintet_kernel::{ApprovalId, SessionId};
use serde_json::{Value, json};

use super::{elicitation, tool_call, wire};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenQuestion {
    pub(super) question: ApprovalId,
    pub(super) tool: String,
    pub(super) input: Value,
    pub(super) assessment: Assessment,
}

impl OpenQuestion {
    /// The parameters of the request. `diffs` are the changes that the call would make.
    pub(super) fn params(&self, session: &SessionId, workspace: &Path, diffs: Vec<Value>) -> Value {
        let Self { question, tool, input, assessment } = self;
        let preview = if diffs.is_empty() {
            Some(assessment.preview.as_str()).filter(|preview| !preview.is_empty())
        } else {
            None
        };
        let title = match elicitation::question(self) {
            Some(asked) => asked.message,
            None => tool_call::title(tool, input),
        };
        let reasons = assessment.reasons.join("; ");
        let about = format!("Risk: {} ({reasons})", assessment.risk.name());
        let texts = preview.into_iter().chain([about.as_str()]);
        let texts = texts.map(|text| json!({ "type": "content", "content": wire::text(text) }));
        let content: Vec<_> = diffs.into_iter().chain(texts).collect();
        json!({
            "sessionId": session.as_str(),
            "toolCall": {
                "toolCallId": question.as_str(),
                "title": title,
                "name": tool,
                "kind": tool_call::kind(tool),
                "status": "pending",
                "content": content,
                "locations": tool_call::locations(workspace, tool, input),
                "rawInput": input,
            },
            "options": self.options(),
        })
    }

    /// The answers to choose from. Their ids are unique to this question, so that a late answer cannot
    /// approve another call.
    fn options(&self) -> Vec<Value> {
        let always = match &self.assessment.subject.similar {
            Some(similar) => format!("Always allow in this session: {similar}"),
            None => "Always allow exactly this in this session".to_owned(),
        };
        let option = |option: PermissionChoice, name: &str| json!({ "optionId": self.option_id(option), "name": name, "kind": option.kind() });
        let once = match self.question {
            ApprovalId::Call(_) => ["Allow", "Reject"],
            ApprovalId::Turn(_) => ["Continue", "Stop"],
            ApprovalId::Question(_) => ["Accept", "Decline"],
        };
        let mut options = match elicitation::question(self) {
            Some(question) => self.choices(&question),
            None => vec![option(PermissionChoice::AllowOnce, once[0])],
        };
        if let ApprovalId::Call(_) = self.question {
            options.push(option(PermissionChoice::AllowAlways, &always));
        }
        options.push(option(PermissionChoice::RejectOnce, once[1]));
        options
    }

    /// The answers to a question of a running call that can be given without typing.
    fn choices(&self, question: &Question) -> Vec<Value> {
        let choices = question.choices().into_iter().enumerate();
        let option = |(n, choice): (usize, QuestionChoice)| {
            let kind = PermissionChoice::AllowOnce.kind();
            json!({ "optionId": self.choice_id(n), "name": choice.label, "kind": kind })
        };
        choices.map(option).collect()
    }

    fn choice_id(&self, n: usize) -> String {
        format!("{}:{n}", self.question)
    }

    /// The content of the chosen answer to a question of a running call.
    fn chosen(&self, option: &str) -> Option<Value> {
        let choices = elicitation::question(self)?.choices().into_iter().enumerate();
        let mut chosen = choices.filter(|(n, _)| self.choice_id(*n) == option);
        chosen.next().map(|(_, choice)| choice.content)
    }

    fn option_id(&self, choice: PermissionChoice) -> String {
        format!("{}:{}", self.question, choice.kind())
    }

    /// The command for the client's outcome. Anything but a clear approval is a denial.
    pub(super) fn answered(&self, outcome: &Value) -> Approve {
        let outcome = &outcome["outcome"];
        let selected = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let content = selected.and_then(|option| self.chosen(option));
        let of_id = |id: &str| match content {
            Some(_) => Some(PermissionChoice::AllowOnce),
            None => PermissionChoice::ALL.into_iter().find(|one| self.option_id(*one) == id),
        };
        let (answer, remember, reason) = match (selected, selected.and_then(of_id)) {
            (_, Some(PermissionChoice::AllowOnce)) => {
                (ApprovalDecision::Allow, RememberScope::Once, None)
            }
            (_, Some(PermissionChoice::AllowAlways)) => {
                (ApprovalDecision::Allow, self.remember(), None)
            }
            (_, Some(PermissionChoice::RejectOnce)) => {
                (ApprovalDecision::Deny, RememberScope::Once, None)
            }
            (Some(_), None) => (
                ApprovalDecision::Deny,
                RememberScope::Once,
                Some("the editor chose an unknown option"),
            ),
            (None, None) => {
                (ApprovalDecision::Deny, RememberScope::Once, Some("the question was dismissed"))
            }
        };
        Approve {
            question: self.question.clone(),
            turn: None,
            answer,
            reason: reason.map(str::to_owned),
            by: DecidedBy::Client,
            remember,
            content,
        }
    }

    fn remember(&self) -> RememberScope {
        match self.assessment.subject.similar {
            Some(_) => RememberScope::Similar,
            None => RememberScope::Same,
        }
    }
}

/// An answer to a permission request.
#[derive(Clone, Copy, Debug)]
enum PermissionChoice {
    AllowOnce,
    AllowAlways,
    RejectOnce,
}

impl PermissionChoice {
    const ALL: [Self; 3] = [Self::AllowOnce, Self::AllowAlways, Self::RejectOnce];

    fn kind(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowAlways => "allow_always",
            Self::RejectOnce => "reject_once",
        }
    }
}
