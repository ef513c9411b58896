//! Encodes calls: the approval request, progress and result.

use quintet_kernel::change::changed_paths;
use quintet_kernel::message::text_of;
use quintet_kernel::question::{Question, QuestionChoice};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolKind};
use quintet_kernel::{ApprovalId, CallId, Time, TurnId};
use serde_json::{Value, json};

use super::blocks::is_diff;
use super::wire;

/// A tool's kind and short description.
#[derive(Debug)]
pub(super) struct ToolInfo {
    pub(super) kind: ToolKind,
    pub(super) text: String,
}

/// The progress of a call, as text: a tool does not know how much is left.
pub(super) fn progress(turn: &TurnId, call: &CallId, status: &str, message: &str) -> Value {
    json!({
        "execution_id": wire::execution_id(call),
        "query_id": wire::query_id(turn),
        "progress": {
            "percentage": 0,
            "indeterminate": true,
            "status": status,
            "message": message,
        },
    })
}

pub(super) fn completed(
    of: (&TurnId, &CallId),
    tool: &str,
    outcome: &Outcome,
    duration: u128,
) -> Value {
    let files = changed_paths(&outcome.changes);
    let status = match outcome.ending {
        Ending::Succeeded | Ending::Idle => "success",
        Ending::Failed | Ending::Skipped | Ending::Interrupted => "error",
        Ending::TimedOut => "timeout",
        Ending::Denied => "denied",
        Ending::Cancelled => "cancelled",
    };
    let mut params = json!({
        "execution_id": wire::execution_id(of.1),
        "query_id": wire::query_id(of.0),
        "tool_name": tool,
        "status": status,
        "result": {
            "output": text_of(&outcome.parts),
            "files_modified": files,
            "duration_ms": u64::try_from(duration).unwrap_or(u64::MAX),
        },
    });
    let code = match outcome.ending {
        Ending::Succeeded | Ending::Idle => return params,
        Ending::Failed | Ending::Skipped | Ending::Interrupted => wire::TOOL_ERROR,
        Ending::TimedOut => wire::TIMEOUT,
        Ending::Denied => wire::PERMISSION_DENIED,
        Ending::Cancelled => wire::CANCELLED,
    };
    let why = outcome.error.as_deref().unwrap_or("the tool failed");
    params["error"] = json!({ "code": code, "message": why });
    params
}

/// A request for approval of a call.
pub(super) struct ApprovalRequest<'a> {
    pub(super) turn: &'a TurnId,
    pub(super) call: &'a CallId,
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) assessment: &'a Assessment,
    pub(super) timeout: Option<u64>,
}

impl ApprovalRequest<'_> {
    pub(super) fn request(&self, tool: Option<&ToolInfo>) -> Value {
        let Assessment { risk, reasons, reversible, preview, subject, .. } = self.assessment;
        let description = self.description(tool);
        let kind = tool.map(|tool| tool.kind);
        let mut request = json!({
            "execution_id": wire::execution_id(self.call),
            "query_id": wire::query_id(self.turn),
            "tool": {
                "name": self.tool,
                "description": description,
                "category": kind.map_or("other", category),
            },
            "arguments": self.input,
            "preview": { "type": preview_type(kind, preview), "content": preview },
            "risk_assessment": {
                "level": risk.name(),
                "reasons": reasons,
                "reversible": reversible,
            },
            "timeout": self.timeout,
            "similar": subject.similar,
            "tool_name": self.tool,
            "description": description,
            "risk_level": risk.name(),
        });
        if let Some(choices) = self.choices() {
            request["choices"] = choices;
        }
        request
    }

    /// The answers to a question of a running call that can be given without typing.
    fn choices(&self) -> Option<Value> {
        let ApprovalId::Question(_) = ApprovalId::parse(self.call.as_str())? else { return None };
        let choices = Question::from_input(self.input)?.choices().into_iter();
        let encode =
            |choice: QuestionChoice| json!({ "label": choice.label, "content": choice.content });
        Some(choices.map(encode).collect())
    }

    /// A description of what this call would do.
    fn description(&self, tool: Option<&ToolInfo>) -> String {
        let subject = &self.assessment.subject;
        let about = if subject.commands.is_empty() {
            subject.paths.join(", ")
        } else {
            subject.commands.join("; ")
        };
        match (about.is_empty(), tool) {
            (false, _) => format!("{} {about}", self.tool),
            (true, Some(tool)) => tool.text.clone(),
            (true, None) => self.tool.to_owned(),
        }
    }
}

fn category(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read | ToolKind::Write | ToolKind::Memory | ToolKind::Delegate => "file_system",
        ToolKind::Exec => "shell",
        ToolKind::Network => "network",
    }
}

fn preview_type(kind: Option<ToolKind>, preview: &str) -> &'static str {
    match kind {
        _ if is_diff(preview) => "diff",
        Some(ToolKind::Exec) => "command",
        Some(
            ToolKind::Read
            | ToolKind::Write
            | ToolKind::Memory
            | ToolKind::Network
            | ToolKind::Delegate,
        )
        | None => "text",
    }
}

/// Seconds between two times, rounded up.
pub(super) fn seconds(from: Time, to: Time) -> u64 {
    u64::try_from(to.since(from).as_millis().div_ceil(1000)).unwrap_or(u64::MAX)
}
