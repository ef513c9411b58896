//! Encodes sessions, contexts, changes and models.

use quintet_kernel::change::{
    FileChange, FileKind, FileVersion, UnrecordedChange, changed_paths, net_changes,
};
use quintet_kernel::context::{self, ContextUpdate, Section};
use quintet_kernel::message::{MediaKind, Message, Part, Role};
use quintet_kernel::model::{ModelInfo, Profile, Usage};
use quintet_kernel::port::Changeset;
use quintet_kernel::port::Models;
use quintet_kernel::prompt::PromptTokens;
use quintet_kernel::session::{Call, CallPhase, OpenTurn, Turn, TurnStatus};
use quintet_kernel::tool::Assessment;
use quintet_kernel::{SessionSummary, State, Status, TurnId, prompt};
use serde_json::{Value, json};

use super::wire;

/// A session with its messages and turns.
pub(super) fn session(state: &State) -> wire::Session {
    let mut shown = summary(&state.summary());
    shown.messages = Some(state.current_messages().map(|message| self::message(message)).collect());
    let current = state.turns.iter().filter(|turn| !turn.superseded);
    shown.turns = Some(current.map(turn).collect());
    shown.pending_approvals =
        state.open.as_ref().map(pending).filter(|pending| !pending.is_empty());
    shown.system_prompt.clone_from(&state.system_prompt);
    shown.model = Some(state.current_model().to_string());
    shown.usage = Some(usage(state.usage));
    shown.last_event_id = Some(state.head.to_string());
    shown
}

/// The summary of a session.
pub(super) fn summary(summary: &SessionSummary) -> wire::Session {
    wire::Session {
        id: summary.id.to_string(),
        created_at: summary.created.to_string(),
        updated_at: summary.updated.to_string(),
        status: status(summary.status),
        mode: summary.labels.get("mode").cloned().unwrap_or_else(|| "chat".into()),
        workspace_path: summary.workspace.to_string_lossy().into_owned(),
        system_prompt: None,
        spec_path: summary.labels.get("spec_path").cloned(),
        last_turn_id: summary.last_turn.as_ref().map(ToString::to_string),
        messages: None,
        turns: None,
        pending_approvals: None,
        model: None,
        usage: None,
        last_event_id: None,
        error: summary.error.clone(),
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cached_tokens": usage.cached,
        "reasoning_tokens": usage.reasoning,
    })
}

pub(super) fn assessment(assessment: &Assessment) -> Value {
    json!({
        "risk": assessment.risk.name(),
        "reasons": assessment.reasons,
        "reversible": assessment.reversible,
        "preview": assessment.preview,
        "similar": assessment.subject.similar,
    })
}

/// The sections about the workspace, as an event.
pub(super) fn context(sections: &[Section], tokens: u64) -> Value {
    json!({ "sections": sections_of(sections), "tokens": tokens })
}

/// The whole text before the conversation.
pub(super) fn whole_context(state: &State, models: &dyn Models) -> Value {
    let update = |update: &ContextUpdate| json!({ "turn_id": update.turn.as_str(), "text": context::format_update(&update.sections) });
    json!({
        "system": prompt::system_prompt(state),
        "updates": state.context.updates.iter().map(update).collect::<Vec<_>>(),
        "sections": sections_of(state.context.current()),
        "tokens": token_counts(prompt::count_prompt_tokens(state, models)),
    })
}

/// The token counts of the next prompt.
fn token_counts(counts: PromptTokens) -> Value {
    let total = counts.total();
    json!({
        "system": counts.system.tokens,
        "tools": counts.tools.tokens,
        "messages": counts.messages.tokens,
        "total": total.tokens,
        "estimated": !total.exact,
    })
}

fn sections_of(sections: &[Section]) -> Vec<Value> {
    let one = |section: &Section| json!({ "title": section.title, "text": section.text });
    sections.iter().map(one).collect()
}

/// The changes of a turn to files.
pub(super) fn changes(turn: &TurnId, set: &Changeset) -> Value {
    json!({
        "turn_id": turn.as_str(),
        "reverted": set.reverted,
        "files": set.files.iter().map(file_change).collect::<Vec<_>>(),
        "more": set.more,
        "unrecorded": set.unrecorded.iter().map(gap).collect::<Vec<_>>(),
        "diff": set.diff,
    })
}

/// The files that an undo touched.
pub(super) fn reverted(files: &[String], more: u64) -> Value {
    let mut shown = json!({ "files": files });
    if more > 0 {
        shown["more"] = more.into();
    }
    shown
}

pub(super) fn file_change(change: &FileChange) -> Value {
    let (size, is_stored) = (
        |version: &Option<FileVersion>| version.as_ref().map(|version| version.size),
        |version: &Option<FileVersion>| {
            let has_content = |it: &FileVersion| it.blob.is_some() || !it.shape.has_content();
            version.as_ref().is_none_or(has_content)
        },
    );
    let kind = match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
    };
    let is = |shape: FileKind| {
        [&change.before, &change.after].into_iter().flatten().any(|it| it.shape == shape)
    };
    let mut shown = json!({
        "path": change.path,
        "change": kind,
        "size_before": size(&change.before),
        "size_after": size(&change.after),
        "revertible": is_stored(&change.before) && is_stored(&change.after),
    });
    for (name, side) in [("hash_before", &change.before), ("hash_after", &change.after)] {
        if let Some(blob) = side.as_ref().and_then(|side| side.blob.as_ref()) {
            shown[name] = blob.as_str().into();
        }
    }
    for (shape, name) in [(FileKind::Link, "link"), (FileKind::Folder, "folder")] {
        if is(shape) {
            shown[name] = true.into();
        }
    }
    shown
}

/// A possible change that is not recorded.
pub(super) fn gap(gap: &UnrecordedChange) -> Value {
    json!({ "path": gap.path, "paths": gap.paths, "reason": gap.reason })
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

pub(super) fn parts(parts: &[Part]) -> Vec<wire::OutPart> {
    parts.iter().filter_map(part).collect()
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::WaitingApproval => "waiting_approval",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "canceled",
    }
}

fn message(message: &Message) -> wire::Message {
    wire::Message {
        id: message.id.to_string(),
        role: role(message.role),
        parts: parts(&message.parts),
        created_at: message.at.to_string(),
        turn_id: message.turn.to_string(),
        tool_call_id: message.call.as_ref().map(ToString::to_string),
        interrupted: message.interrupted,
    }
}

/// Encodes a part. Thoughts are streamed, but are not part of a message.
fn part(part: &Part) -> Option<wire::OutPart> {
    match part {
        Part::Text(text) | Part::Context(text) => Some(wire::OutPart::Text { text: text.clone() }),
        Part::Thought(_) => None,
        Part::Media { kind, name, mime } => {
            let (r#ref, mime_type) = (format!("attachments/{name}"), mime.clone());
            Some(match kind {
                MediaKind::Image => wire::OutPart::Image { r#ref, mime_type },
                MediaKind::Audio => wire::OutPart::Audio { r#ref, mime_type },
                MediaKind::File => wire::OutPart::File { r#ref, mime_type },
            })
        }
        Part::Call { call, tool, input } => Some(wire::OutPart::ToolUse {
            tool_call_id: call.to_string(),
            tool_name: tool.clone(),
            tool_input: input.clone(),
        }),
    }
}

fn turn(turn: &Turn) -> wire::Turn {
    wire::Turn {
        id: turn.id.to_string(),
        status: match turn.status {
            TurnStatus::Pending => "pending",
            TurnStatus::Running => "running",
            TurnStatus::WaitingApproval => "waiting_approval",
            TurnStatus::Succeeded => "succeeded",
            TurnStatus::Failed => "failed",
            TurnStatus::Cancelled => "canceled",
        },
        started_at: turn.started.map(|at| at.to_string()),
        completed_at: turn.completed.map(|at| at.to_string()),
        error: turn.error.clone(),
        verified: turn.verified,
        changed_files: changed_paths(&net_changes(&turn.changes))
            .into_iter()
            .map(str::to_owned)
            .collect(),
        reverted: turn.reverted,
    }
}

fn pending(open: &OpenTurn) -> Vec<Value> {
    let asked = |call: &Call| match &call.phase {
        CallPhase::Asked { assessment, .. } => Some(json!({
            "turn_id": open.id.as_str(),
            "tool_call_id": call.id().as_str(),
            "tool": call.request.tool,
            "input": call.request.input,
            "assessment": self::assessment(assessment),
        })),
        _ => None,
    };
    let questions = open.questions.iter().map(|asked| {
        json!({
            "turn_id": open.id.as_str(),
            "tool_call_id": asked.id.as_str(),
            "question_of": asked.call.as_str(),
            "tool": open.call(&asked.call).map(|call| &call.request.tool),
            "input": asked.question.as_input(),
            "assessment": self::assessment(&asked.question.assessment()),
        })
    });
    open.calls().iter().filter_map(asked).chain(questions).collect()
}

/// A model of the list.
pub(super) fn model(listed: &ModelInfo) -> Value {
    let Profile { inputs, tools, context_window, search: _ } = &listed.profile;
    json!({
        "id": listed.model.to_string(),
        "provider": listed.model.provider,
        "providerModelId": listed.model.model,
        "displayName": listed.model.to_string(),
        "modalities": {
            "text": true,
            "vision": inputs.contains(&MediaKind::Image),
            "audioIn": inputs.contains(&MediaKind::Audio),
        },
        "features": { "tools": tools, "streaming": true },
        "limits": context_window.map(|tokens| json!({ "contextTokens": tokens })),
        "availability": { "entitled": listed.usable },
    })
}
