//! Encodes sessions as results of MCP tools and resources.

use std::fmt::Write as _;

use quintet_kernel::message::{Message, Part, Role};
use quintet_kernel::session::{CallPhase, TurnStatus};
use quintet_kernel::session_summary::{SessionSummary, Status};
use quintet_kernel::tool::Assessment;
use quintet_kernel::{Cursor, State, Time, TurnId};
use serde_json::Value;

use super::wire::{OpenQuestion, Report, SessionEntry};

const OPTIONS: [&str; 2] = ["approve", "deny"];

/// The longest transcript, in bytes.
const TRANSCRIPT_LIMIT: usize = 1024 * 1024;

/// The states of a turn on the wire.
pub(super) const RUNNING: &str = "running";
pub(super) const INPUT_REQUIRED: &str = "input_required";
const COMPLETED: &str = "completed";
const FAILED: &str = "failed";
const CANCELLED: &str = "cancelled";

/// The state of a turn; a session without a turn counts as completed.
pub(super) fn turn_state(state: &State, turn: Option<&TurnId>) -> &'static str {
    let status = turn.and_then(|turn| state.turn(turn)).map(|turn| turn.status);
    let is_open = state.open.as_ref().is_some_and(|open| Some(&open.id) == turn);
    match status {
        Some(TurnStatus::Pending | TurnStatus::Running) if is_open && has_questions(state) => {
            INPUT_REQUIRED
        }
        Some(TurnStatus::Pending | TurnStatus::Running) => RUNNING,
        Some(TurnStatus::WaitingApproval) => INPUT_REQUIRED,
        Some(TurnStatus::Succeeded) | None => COMPLETED,
        Some(TurnStatus::Failed) => FAILED,
        Some(TurnStatus::Cancelled) => CANCELLED,
    }
}

fn has_questions(state: &State) -> bool {
    !questions(state).is_empty()
}

/// A turn with the text that is new to the client.
pub(super) fn report(state: &State, turn: Option<&TurnId>, text: String, cursor: Cursor) -> Report {
    let error = turn.and_then(|turn| state.turn(turn)).and_then(|turn| turn.error.clone());
    let is_open = state.open.as_ref().is_some_and(|open| Some(&open.id) == turn);
    Report {
        session: state.id.to_string(),
        turn: turn.map(TurnId::to_string),
        state: turn_state(state, turn),
        cursor: cursor.to_string(),
        text,
        questions: if is_open { questions(state) } else { Vec::new() },
        error,
    }
}

/// The open questions: calls of the session and of its subagents, and a turn that a crash interrupted.
fn questions(state: &State) -> Vec<OpenQuestion> {
    let Some(open) = &state.open else { return Vec::new() };
    let held = open.held.then(|| OpenQuestion {
        id: open.id.to_string(),
        tool: None,
        arguments: Value::Null,
        risk: None,
        reasons: vec!["the daemon stopped during this turn".to_owned()],
        preview: "continue the turn".to_owned(),
        options: OPTIONS,
        expires: None,
    });
    let own = open.calls().iter().filter_map(|call| match &call.phase {
        CallPhase::Asked { assessment, expires } => {
            let asked = (call.id().to_string(), &call.request.tool, &call.request.input);
            Some(question(asked, assessment, *expires))
        }
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Started(..)
        | CallPhase::Done(_) => None,
    });
    let of_subagents = state.asked.iter().map(|asked| {
        let shown = (asked.question.to_string(), &asked.tool, &asked.input);
        question(shown, &asked.assessment, asked.expires)
    });
    let questions = open.questions.iter().map(|asked| {
        let call = open.call(&asked.call);
        let tool = call.map(|call| call.request.tool.clone()).unwrap_or_default();
        let shown = (asked.id.to_string(), &tool, &asked.question.as_input());
        question(shown, &asked.question.assessment(), asked.expires)
    });
    held.into_iter().chain(own).chain(questions).chain(of_subagents).collect()
}

fn question(
    (id, tool, input): (String, &String, &Value),
    assessment: &Assessment,
    expires: Option<Time>,
) -> OpenQuestion {
    OpenQuestion {
        id,
        tool: Some(tool.clone()),
        arguments: input.clone(),
        risk: Some(assessment.risk.name()),
        reasons: assessment.reasons.clone(),
        preview: assessment.preview.clone(),
        options: OPTIONS,
        expires: expires.map(|time| time.to_string()),
    }
}

/// A session in a list.
pub(super) fn session_entry(summary: &SessionSummary) -> SessionEntry {
    let state = match summary.status {
        Status::Active if summary.open => RUNNING,
        Status::Active | Status::Completed => COMPLETED,
        Status::WaitingApproval => INPUT_REQUIRED,
        Status::Failed => FAILED,
        Status::Cancelled => CANCELLED,
    };
    SessionEntry {
        session: summary.id.to_string(),
        title: summary.title.clone(),
        state,
        workspace: summary.workspace.to_string_lossy().into_owned(),
        updated: summary.updated.to_string(),
    }
}

/// The transcript of a session as Markdown. The start of a very long one is left out.
pub(super) fn transcript(state: &State) -> String {
    let mut parts: Vec<String> = Vec::new();
    let (mut length, mut left_out) = (0, state.current_messages().count());
    for message in state.current_messages().rev() {
        let text = message_text(message);
        length += text.len();
        if length > TRANSCRIPT_LIMIT && !parts.is_empty() {
            break;
        }
        left_out -= 1;
        parts.push(text);
    }
    if left_out > 0 {
        parts.push(format!("[{left_out} earlier messages left out]\n"));
    }
    parts.push(format!("# {}\n", state.id));
    parts.reverse();
    parts.join("\n")
}

fn message_text(message: &Message) -> String {
    let role = match message.role {
        Role::System => "System",
        Role::User => "User",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    let mut text = format!("## {role}\n\n");
    for part in &message.parts {
        let _infallible = match part {
            Part::Text(content) => writeln!(text, "{content}"),
            Part::Context(_) | Part::Thought(_) => Ok(()),
            Part::Media { name, .. } => writeln!(text, "[{name}]"),
            Part::Call { tool, input, .. } => writeln!(text, "`{tool}` {input}"),
        };
    }
    text
}
