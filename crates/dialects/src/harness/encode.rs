//! Encodes events of the core as events of the harness.

use std::path::Path;

use quintet_kernel::event::{
    ApprovalDecision, DecidedBy, Event, Record, RememberScope, SubagentUpdate,
};
use quintet_kernel::message::text_of;
use quintet_kernel::model::Channel;
use quintet_kernel::question::QuestionAnswer;
use quintet_kernel::tool::{Ending, Outcome};
use quintet_kernel::{Cursor, Item, MessageId, SessionId, Time, TurnId};
use serde_json::{Value, json};

use super::position::Position;
use super::{shape, wire};

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Link {
    session: SessionId,
    /// The position at which the stream started.
    from: Position,
    /// The position of the last frame.
    last: Position,
}

/// One encoded event of the harness.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) position: Position,
    pub(super) json: Vec<u8>,
}

impl Link {
    pub(super) fn new(session: SessionId, from: Position) -> Self {
        Self { session, from, last: from }
    }

    /// Encodes an item, which may be no event or several.
    pub(super) fn encode(&mut self, item: &Item) -> Vec<Frame> {
        match item {
            Item::Event(record) => self.event(record),
            Item::Text { position, turn, channel, text, at, .. } => {
                // Thoughts have their own event type, because clients join all deltas of an answer without
                // checking their kind.
                let (event, kind) = match channel {
                    Channel::Text => ("model_output_delta", "text"),
                    Channel::Thought => ("model_thought_delta", "thought"),
                };
                let data = wire::Data::Delta { kind, delta: text };
                self.last = Position::After(*position);
                vec![self.frame(*at, Some(turn), Part { kind: event, message: None, data })]
            }
            Item::Progress { turn, call, text, at } => {
                let data = json!({ "tool_call_id": call.as_str(), "delta": &**text });
                vec![self.frame(*at, Some(turn), Part::new("tool_call_progress", data))]
            }
        }
    }

    fn event(&mut self, record: &Record) -> Vec<Frame> {
        let parts = parts(&record.event);
        let (count, skip) = (parts.len(), self.from.parts_seen(record.seq));
        let turn = record.event.turn();
        let mut frames = Vec::with_capacity(count);
        for (n, part) in parts.into_iter().enumerate().skip(skip) {
            self.last = if n + 1 == count {
                Position::After(Cursor::after(record.seq))
            } else {
                Position::Within(record.seq, n + 1)
            };
            frames.push(self.frame(record.at, turn, part));
        }
        frames
    }

    fn frame(&self, at: Time, turn: Option<&TurnId>, part: Part<'_>) -> Frame {
        let event = wire::Event {
            ts: at.to_string(),
            session_id: self.session.as_str(),
            turn_id: turn.map(TurnId::as_str),
            kind: part.kind,
            message: part.message,
            data: part.data,
        };
        let json = serde_json::to_vec(&event).expect("events have string keys");
        Frame { position: self.last, json }
    }
}

/// One event of the harness without its envelope.
struct Part<'a> {
    kind: &'static str,
    message: Option<&'a str>,
    data: wire::Data<'a>,
}

impl<'a> Part<'a> {
    fn new(kind: &'static str, data: Value) -> Self {
        Self { kind, message: None, data: wire::Data::Json(data) }
    }

    fn with_message(self, message: &'a str) -> Self {
        Self { message: Some(message), ..self }
    }
}

fn reverted(files: &[String], more: u64, reapplied: bool) -> Part<'static> {
    let kind = if reapplied { "turn_reapplied" } else { "turn_reverted" };
    Part::new(kind, shape::reverted(files, more))
}

fn parts(event: &Event) -> Vec<Part<'_>> {
    match event {
        Event::SessionCreated(origin) => vec![Part::new(
            "session_created",
            json!({
                "workspace_path": origin.workspace.to_string_lossy(),
                "mode": origin.labels.get("mode").map_or("chat", String::as_str),
            }),
        )],
        Event::Forked { parent, at } => {
            vec![Part::new("session_created", json!({ "forked_from": parent.as_str(), "at": at }))]
        }
        Event::Labelled { key, value } => labelled(key, value.as_deref()),
        Event::ModelSwitched { model } => {
            vec![Part::new("model_switched", json!({ "model": model.to_string() }))]
        }
        Event::AttachmentAdded(file) => vec![Part::new(
            "attachment_added",
            json!({ "ref": format!("attachments/{}", file.name), "mime_type": file.mime, "size": file.size }),
        )],
        Event::MessageAdded { message, role, parts, .. } => vec![Part::new(
            "message_added",
            json!({
                "message_id": message.as_str(),
                "role": shape::role(*role),
                "parts": shape::parts(parts),
            }),
        )],
        Event::TurnStarted { attempt, .. } => {
            vec![Part::new("turn_started", json!({ "attempt": attempt }))]
        }
        Event::ContextGathered { sections, .. } if sections.is_empty() => Vec::new(),
        Event::ContextGathered { sections, tokens, .. } => {
            vec![Part::new("context_gathered", shape::context(sections, *tokens))]
        }
        Event::StepStarted { model, step, .. } => vec![Part::new(
            "model_resolved",
            json!({ "model": model.to_string(), "step_id": step.as_str() }),
        )],
        Event::ModelRetrying { attempt, wait_ms, reason, .. } => vec![
            Part::new("model_retrying", json!({ "attempt": attempt, "wait_ms": wait_ms }))
                .with_message(reason),
        ],
        Event::ModelCompleted { message, finish, usage, .. } => {
            let usage = shape::usage(*usage);
            let data = json!({ "finish_reason": finish.name(), "usage": usage });
            let completed = Part::new("model_output_completed", data);
            let added = message.as_ref().map(|id| message_added(id.as_str(), "assistant", None));
            [Some(completed), added].into_iter().flatten().collect()
        }
        Event::StepInterrupted { message, reason, .. } => {
            let data = json!({ "finish_reason": "interrupted" });
            let completed = Part::new("model_output_completed", data).with_message(reason);
            let added = message.as_ref().map(|id| message_added(id.as_str(), "assistant", None));
            [Some(completed), added].into_iter().flatten().collect()
        }
        // The verification is shown as a tool call.
        Event::VerificationRequested { .. } => Vec::new(),
        Event::ReviewRequested { .. }
        | Event::Reviewed { .. }
        | Event::ApprovalRequested { .. }
        | Event::ApprovalAnswered { .. } => approval(event),
        Event::QuestionAsked { .. } | Event::QuestionAnswered { .. } => question(event),
        Event::CallStarted { call, tool, input, .. } => vec![Part::new(
            "tool_call_started",
            json!({ "tool": tool, "tool_call_id": call.as_str(), "input": input }),
        )],
        // Observers do not need to know which client runs a call.
        Event::CallClaimed { .. } | Event::ClaimHolderLost { .. } | Event::ClaimReleased { .. } => {
            Vec::new()
        }
        Event::CallCompleted { call, tool, message, outcome, .. } => {
            completed(call.as_str(), tool, message.as_str(), outcome)
        }
        Event::Subagent { call, session, news, .. } => {
            vec![subagent(call.as_str(), session.as_str(), news)]
        }
        // Tools are shown when they are called.
        Event::ToolsChosen(_) | Event::Instructed { .. } => Vec::new(),
        Event::Moved { workspace } => vec![moved(workspace)],
        Event::Forgotten { upto } => vec![forgotten(upto)],
        Event::Superseded { from } => vec![superseded(from)],
        // Only the end of these is shown, and text is never sent as an event.
        Event::StopRequested { .. }
        | Event::TextAppended { .. }
        | Event::RevertRequested { .. }
        | Event::CompactionRequested { .. } => Vec::new(),
        Event::TurnResumed { .. }
        | Event::TurnHeld { .. }
        | Event::TurnReleased { .. }
        | Event::TurnCompleted { .. }
        | Event::TurnFailed { .. }
        | Event::TurnCancelled { .. } => turn_event(event),
        Event::Reverted { files, more, reapplied, .. } => vec![reverted(files, *more, *reapplied)],
        Event::RevertFailed { reason, .. } => {
            vec![Part::new("turn_revert_failed", json!({})).with_message(reason)]
        }
        Event::Compacted { .. }
        | Event::CompactionFailed { .. }
        | Event::MemorySaved { .. }
        | Event::MemoryNotSaved { .. } => compaction(event),
        Event::SessionClosed { reason, .. } => {
            vec![Part::new("session_completed", json!({ "reason": reason }))]
        }
    }
}

fn subagent<'a>(call: &str, session: &str, news: &'a SubagentUpdate) -> Part<'a> {
    let (name, mut data) = match news {
        SubagentUpdate::Spawned { task, model, .. } => (
            "subagent_spawned",
            json!({ "task": task, "model": model.as_ref().map(ToString::to_string) }),
        ),
        SubagentUpdate::Progressed { steps, status } => {
            ("subagent_progress", json!({ "steps": steps, "status": status }))
        }
        SubagentUpdate::Asked { call, tool, input, assessment, expires } => (
            "subagent_approval_requested",
            json!({
                "subagent_tool_call_id": call.as_str(),
                "tool": tool,
                "args": input,
                "risk": assessment.risk.name(),
                "preview": assessment.preview,
                "expires_at": expires.map(|at| at.to_string()),
            }),
        ),
        SubagentUpdate::Settled { call, answer } => (
            "subagent_approval_settled",
            json!({
                "subagent_tool_call_id": call.as_str(),
                "allowed": answer.map(|answer| answer == ApprovalDecision::Allow),
            }),
        ),
        SubagentUpdate::Completed { result, ok, usage } => (
            "subagent_completed",
            json!({ "result": result, "ok": ok, "usage": shape::usage(*usage) }),
        ),
    };
    data["tool_call_id"] = call.into();
    data["subagent_session_id"] = session.into();
    Part::new(name, data)
}

fn compaction(event: &Event) -> Vec<Part<'_>> {
    match event {
        Event::Compacted { upto, messages, tokens_before, summary, .. } => vec![Part::new(
            "context_compacted",
            json!({
                "upto_message_id": upto.as_str(),
                "messages": messages,
                "tokens_before": tokens_before,
                "summary": summary,
            }),
        )],
        Event::CompactionFailed { reason } => {
            vec![Part::new("context_compaction_failed", json!({})).with_message(reason)]
        }
        Event::MemorySaved { path, .. } => {
            vec![Part::new("memory_saved", json!({ "path": path }))]
        }
        Event::MemoryNotSaved { reason, .. } => {
            vec![Part::new("memory_save_failed", json!({})).with_message(reason)]
        }
        _ => Vec::new(),
    }
}

fn turn_event(event: &Event) -> Vec<Part<'_>> {
    match event {
        Event::TurnResumed { after_ms, .. } => {
            vec![Part::new("turn_resumed", json!({ "after_ms": after_ms }))]
        }
        Event::TurnHeld { reason, .. } => {
            vec![Part::new("turn_held", json!({})).with_message(reason)]
        }
        Event::TurnReleased { .. } => vec![Part::new("turn_released", json!({}))],
        Event::TurnCompleted { usage, verified, .. } => vec![Part::new(
            "turn_completed",
            json!({ "usage": shape::usage(*usage), "verified": verified }),
        )],
        Event::TurnFailed { code, message, usage, .. } => {
            let data = json!({ "code": code.name(), "usage": shape::usage(*usage) });
            vec![
                Part::new("turn_failed", data).with_message(message),
                Part::new("session_failed", json!({ "code": code.name() })).with_message(message),
            ]
        }
        Event::TurnCancelled { reason, usage, .. } => {
            let data = json!({ "reason": reason, "usage": shape::usage(*usage) });
            vec![Part::new("session_canceled", data).with_message("canceled")]
        }
        _ => Vec::new(),
    }
}

fn labelled<'a>(key: &str, value: Option<&'a str>) -> Vec<Part<'a>> {
    match key {
        "mode" => vec![Part::new("session_mode_set", json!({ "mode": value }))],
        "spec_path" => vec![Part::new("spec_path_set", json!({ "spec_path": value }))],
        _ => Vec::new(),
    }
}

fn moved(workspace: &Path) -> Part<'static> {
    Part::new("workspace_changed", json!({ "workspace_path": workspace }))
}

fn forgotten(upto: &MessageId) -> Part<'static> {
    Part::new("history_replaced", json!({ "upto_message_id": upto.as_str() }))
}

fn superseded(from: &TurnId) -> Part<'static> {
    Part::new("turns_superseded", json!({ "from_turn_id": from.as_str() }))
}

fn approval(event: &Event) -> Vec<Part<'_>> {
    match event {
        Event::ReviewRequested { call, tool, assessment, .. } => {
            let mut data = shape::assessment(assessment);
            data["tool"] = tool.as_str().into();
            data["tool_call_id"] = call.as_str().into();
            vec![Part::new("patch_review_requested", data)]
        }
        Event::Reviewed { call, tool, answer, comment, usage, .. } => {
            let approved = answer.map(|answer| answer == ApprovalDecision::Allow);
            let data = json!({
                "tool": tool,
                "tool_call_id": call.as_str(),
                "approved": approved,
                "usage": shape::usage(*usage),
            });
            vec![Part::new("patch_reviewed", data).with_message(comment)]
        }
        Event::ApprovalRequested { call, tool, input, assessment, expires, .. } => {
            let mut data = shape::assessment(assessment);
            data["tool"] = tool.as_str().into();
            data["tool_call_id"] = call.as_str().into();
            data["input"] = input.clone();
            data["expires_at"] = expires.map(|at| at.to_string()).into();
            vec![Part::new("approval_requested", data)]
        }
        Event::ApprovalAnswered { call, tool, answer, reason, by, remember, .. } => {
            let kind = match answer {
                ApprovalDecision::Allow => "approval_granted",
                ApprovalDecision::Deny => "approval_denied",
            };
            let by = by_name(*by);
            let mut data =
                json!({ "tool": tool, "tool_call_id": call.as_str(), "reason": reason, "by": by });
            if *remember != RememberScope::Once {
                data["remember_choice"] = true.into();
                data["apply_to_similar"] = (*remember == RememberScope::Similar).into();
            }
            vec![Part::new(kind, data)]
        }
        _ => Vec::new(),
    }
}

/// A question of a running call is encoded as an approval with the question's id.
fn question(event: &Event) -> Vec<Part<'_>> {
    match event {
        Event::QuestionAsked { call, tool, id, question, expires, .. } => {
            let mut data = shape::assessment(&question.assessment());
            data["tool"] = tool.as_str().into();
            data["tool_call_id"] = id.as_str().into();
            data["question_of"] = call.as_str().into();
            data["input"] = question.as_input();
            data["expires_at"] = expires.map(|at| at.to_string()).into();
            vec![Part::new("approval_requested", data)]
        }
        Event::QuestionAnswered { call, tool, id, answer, reason, by, .. } => {
            let (kind, content) = match answer {
                QuestionAnswer::Accepted { content } => ("approval_granted", Some(content)),
                QuestionAnswer::Declined | QuestionAnswer::Cancelled => ("approval_denied", None),
            };
            let data = json!({
                "tool": tool,
                "tool_call_id": id.as_str(),
                "question_of": call.as_str(),
                "content": content,
                "reason": reason,
                "by": by.map_or("call_ended", by_name),
            });
            vec![Part::new(kind, data)]
        }
        _ => Vec::new(),
    }
}

fn by_name(by: DecidedBy) -> &'static str {
    match by {
        DecidedBy::Client => "client",
        DecidedBy::Clock => "timeout",
        DecidedBy::Memory => "remembered",
    }
}

fn completed<'a>(call: &str, tool: &str, message: &str, outcome: &'a Outcome) -> Vec<Part<'a>> {
    let artifacts: Vec<Value> = outcome.artifacts.iter().map(|file| json!(file.name)).collect();
    let mut data = json!({
        "tool": tool,
        "tool_call_id": call,
        "ok": outcome.ok(),
        "error": outcome.error,
        "output": text_of(&outcome.parts),
        "artifacts": artifacts,
    });
    if !outcome.changes.is_empty() {
        let changes = outcome.changes.iter().map(shape::file_change);
        data["changes"] = changes.collect::<Vec<_>>().into();
    }
    if !outcome.unrecorded.is_empty() {
        let gaps = outcome.unrecorded.iter().map(shape::gap);
        data["unrecorded"] = gaps.collect::<Vec<_>>().into();
    }
    let mut parts = Vec::new();
    if outcome.ending == Ending::Skipped {
        data["skipped"] = true.into();
        let skipped = json!({ "tool": tool, "tool_call_id": call, "reason": outcome.error });
        parts.push(Part::new("tool_call_skipped", skipped));
    }
    parts.push(Part::new("tool_call_completed", data));
    parts.push(message_added(message, "tool", Some(call)));
    parts
}

fn message_added(message: &str, role: &str, call: Option<&str>) -> Part<'static> {
    let mut data = json!({ "message_id": message, "role": role });
    if let Some(call) = call {
        data["tool_call_id"] = call.into();
    }
    Part::new("message_added", data)
}
