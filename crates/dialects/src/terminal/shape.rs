//! Encodes sessions: in a list, opened, and as text.

use quintet_kernel::message::{Message, Role};
use quintet_kernel::model::{ModelInfo, ModelRef};
use quintet_kernel::session::TurnStatus;
use quintet_kernel::{SessionSummary, State, Time};
use serde_json::{Value, json};

use super::blocks::blocks;
use super::wire;

/// The most bytes of messages in one response; the largest message has space for more.
const MESSAGES_BYTES_LIMIT: usize = 8 * 1024 * 1024;

/// A session in a list.
pub(super) fn summary(summary: &SessionSummary) -> Value {
    json!({
        "session_id": summary.id.as_str(),
        "title": title(&summary.title),
        "created_at": with_offset(summary.created),
        "updated_at": with_offset(summary.updated),
        "message_count": summary.messages,
        "total_tokens": summary.tokens,
        "workspace": summary.workspace.to_string_lossy(),
        "running": summary.open,
    })
}

/// An opened session. Only the newest messages of a very long one are included.
pub(super) fn loaded(state: &State) -> Value {
    let all = messages_view(state);
    let count = all.len();
    let mut space = MESSAGES_BYTES_LIMIT;
    let fits = |message: &&Value| {
        let length = message.to_string().len();
        let fits = length <= space;
        space = space.saturating_sub(length);
        fits
    };
    let mut messages: Vec<&Value> = all.iter().rev().take_while(fits).collect();
    messages.reverse();
    json!({
        "loaded": true,
        "status": "success",
        "session_id": state.id.as_str(),
        "message_count": count,
        "truncated": messages.len() < count,
        "messages": messages,
        "session": {
            "id": state.id.as_str(),
            "title": title(&state.summary().title),
            "created": seconds(state.created.unwrap_or(state.updated)),
            "updated": seconds(state.updated),
            "blocks_count": blocks_view(state).len(),
            "messages_count": count,
            "workspace": state.workspace.to_string_lossy(),
            "total_tokens": state.usage.total(),
        },
        "running_queries": running(state),
    })
}

/// The open queries.
fn running(state: &State) -> Vec<Value> {
    let open = |status| match status {
        TurnStatus::Running | TurnStatus::WaitingApproval => Some("processing"),
        TurnStatus::Pending => Some("queued"),
        TurnStatus::Succeeded | TurnStatus::Failed | TurnStatus::Cancelled => None,
    };
    let queued = |turn: &&quintet_kernel::session::Turn| {
        turn.status != TurnStatus::Pending || turn.options.queued
    };
    let one = |turn: &quintet_kernel::session::Turn| {
        Some(json!({ "query_id": wire::query_id(&turn.id), "status": open(turn.status)? }))
    };
    state.turns.iter().filter(queued).filter_map(one).collect()
}

/// The messages of users and models, without tool calls.
pub(super) fn messages_view(state: &State) -> Vec<Value> {
    messages(state)
        .map(|message| {
            json!({
                "role": role(message.role),
                "content": message.text(),
                "timestamp": message.at.to_string(),
            })
        })
        .collect()
}

/// The blocks of all answers, each with the index of its message in [`messages_view`].
pub(super) fn blocks_view(state: &State) -> Vec<Value> {
    let answers =
        messages(state).enumerate().filter(|(_, message)| message.role == Role::Assistant);
    let of_message = |(index, message): (usize, &Message)| {
        let blocks = blocks(&message.text()).into_iter().enumerate();
        let id = message.id.clone();
        blocks.map(move |(n, block)| {
            let block_id = format!("block-{id}-{}", n + 1);
            json!({ "block_id": block_id, "message": index, "block": wire::block(&block) })
        })
    };
    answers.flat_map(of_message).collect()
}

/// A session as Markdown.
pub(super) fn markdown(state: &State) -> String {
    let mut text = format!("# {}\n\n", title(&state.summary().title));
    text.push_str(&format!("Session {}, in {}.\n", state.id, state.workspace.display()));
    for message in messages(state) {
        let role = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::System | Role::Tool => "System",
        };
        text.push_str(&format!("\n## {role}, {}\n\n{}\n", message.at, escaped(&message.text())));
    }
    text
}

/// A model of the list.
pub(super) fn model(listed: &ModelInfo, default: &ModelRef) -> Value {
    let name = listed.model.to_string();
    let kind = if listed.model.model.to_lowercase().contains("code") { "code" } else { "chat" };
    json!({
        "name": name,
        "type": kind,
        "loaded": listed.usable,
        "default": listed.model == *default,
        "context_window": listed.profile.context_window,
    })
}

fn messages(state: &State) -> impl Iterator<Item = &Message> {
    let has_text = |message: &&Message| message.role != Role::Tool && !message.text().is_empty();
    state.current_messages().map(|message| &**message).filter(has_text)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System | Role::Tool => "system",
    }
}

/// The title of a session, or a default.
pub(super) fn title(title: &str) -> &str {
    if title.is_empty() { "Untitled" } else { title }
}

/// Escapes headings in messages; code stays unchanged.
fn escaped(text: &str) -> String {
    let mut fenced = false;
    let line = |line: &str| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if line.starts_with('#') && !fenced { format!("\\{line}") } else { line.to_owned() }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn seconds(at: Time) -> i64 {
    at.micros().div_euclid(1_000_000)
}

/// The original client expects a time zone offset.
fn with_offset(at: Time) -> String {
    let text = at.to_string();
    match text.strip_suffix('Z') {
        Some(text) => format!("{text}+00:00"),
        None => text,
    }
}
