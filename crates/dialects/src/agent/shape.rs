//! Encodes sessions, models and contexts.

use quintet_kernel::message::{MediaKind, Message, Role};
use quintet_kernel::model::ModelInfo;
use quintet_kernel::port::Models;
use quintet_kernel::prompt::{PromptTokens, count_prompt_tokens};
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::Placement;
use quintet_kernel::{ApprovalId, SessionSummary, State, Status};
use serde_json::{Value, json};

use super::context_detail::ASSUMED_CONTEXT_WINDOW;
use super::event_id::event_id;
use super::question::{is_question, question_arguments};
use super::stored_event::{block, usage_of};

/// The levels of a context window's use, by the share that is in use.
const LEVEL_THRESHOLDS: [(f64, &str); 4] =
    [(0.95, "exceeded"), (0.85, "critical"), (0.70, "alert"), (0.50, "warning")];

/// The summary of a session.
pub(super) fn session(summary: &SessionSummary, default_model: &str) -> Value {
    let model =
        summary.model.as_ref().map_or_else(|| default_model.to_owned(), ToString::to_string);
    let fork = summary.forked.as_ref();
    json!({
        "id": summary.id.as_str(),
        "sessionId": summary.id.as_str(),
        "workspaceId": summary.workspace.to_string_lossy(),
        "workingDirectory": summary.workspace.to_string_lossy(),
        "model": model,
        "title": summary.labels.get("title").filter(|title| !title.is_empty()).unwrap_or(&summary.title),
        "status": status(summary),
        "isActive": summary.open,
        "createdAt": summary.created.to_rfc3339_millis(),
        "updatedAt": summary.updated.to_rfc3339_millis(),
        "lastActivity": summary.updated.to_rfc3339_millis(),
        "messageCount": summary.messages,
        "totalTokens": summary.tokens,
        "inputTokens": summary.usage.input,
        "outputTokens": summary.usage.output,
        "cacheReadTokens": summary.usage.cached,
        "cacheCreationTokens": summary.usage.cache_written,
        "lastTurnInputTokens": summary.context,
        // Costs are not computed; the original's clients expect a number.
        "cost": 0,
        "eventCount": summary.head,
        "lastSequence": summary.head,
        "headEventId": event_id(&summary.id, summary.head),
        "lastUserPrompt": summary.last_prompt,
        "lastAssistantResponse": summary.last_answer,
        "parentSessionId": fork.map(|fork| fork.parent.as_str()),
        "forkFromEventId": fork.map(|fork| event_id(&fork.parent, fork.at)),
        "error": summary.error,
    })
}

fn status(summary: &SessionSummary) -> &'static str {
    match summary.status {
        Status::WaitingApproval => "waiting",
        Status::Active if summary.open => "running",
        Status::Active => "idle",
        Status::Completed => "ended",
        Status::Failed => "error",
        Status::Cancelled => "aborted",
    }
}

/// A session with its messages and open questions.
pub(super) fn whole_session(state: &State) -> Value {
    let mut shown = session(&state.summary(), &state.current_model().to_string());
    let messages: Vec<Value> =
        state.current_messages().map(|message| self::message(message)).collect();
    shown["tokenUsage"] = usage_of(state.usage);
    shown["turnCount"] = state.turns.len().into();
    shown["messages"] = messages.into();
    shown["pending"] = pending(state).into();
    shown
}

fn message(message: &Message) -> Value {
    let blocks: Vec<Value> = message.parts.iter().filter_map(block).collect();
    json!({
        "id": message.id.as_str(),
        "role": role(message.role),
        "content": blocks,
        "timestamp": message.at.to_rfc3339_millis(),
        "toolCallId": message.call.as_ref().map(|call| call.as_str()),
        "isError": message.ending.map(|ending| !matches!(
            ending,
            quintet_kernel::tool::Ending::Succeeded | quintet_kernel::tool::Ending::Idle
        )),
        "interrupted": message.interrupted,
    })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "toolResult",
    }
}

/// The open questions and approvals.
fn pending(state: &State) -> Vec<Value> {
    let asked = |call: &Call| {
        let kind = match &call.phase {
            CallPhase::Asked { .. } => "approval",
            CallPhase::Started(_, Placement::Client) if is_question(call.front_end.as_deref()) => {
                "question"
            }
            _ => return None,
        };
        let (id, name) = (call.id().as_str(), &call.request.tool);
        Some(
            json!({ "toolId": id, "toolName": name, "arguments": call.request.input, "kind": kind }),
        )
    };
    let own = state.open.iter().flat_map(|open| open.calls()).filter_map(asked);
    let questions = state.open.iter().flat_map(|open| {
        open.questions.iter().map(|asked| {
            json!({
                "toolId": asked.id.as_str(),
                "toolName": open.call(&asked.call).map(|call| &call.request.tool),
                "arguments": question_arguments(&asked.question),
                "kind": "question",
            })
        })
    });
    let of_subagents = state.asked.iter().map(|asked| {
        let kind = match asked.question {
            ApprovalId::Question(_) => "question",
            ApprovalId::Call(_) | ApprovalId::Turn(_) => "approval",
        };
        json!({
            "toolId": asked.question.as_str(),
            "toolName": asked.tool,
            "arguments": asked.input,
            "kind": kind,
            "subagentSessionId": asked.session.as_str(),
        })
    });
    let held = state.open.iter().filter_map(|open| open.question()).map(|question| {
        json!({
            "toolId": question.as_str(),
            "toolName": "resume_turn",
            "arguments": {},
            "kind": "held",
        })
    });
    held.chain(own).chain(questions).chain(of_subagents).collect()
}

/// What the agent is doing. `events` are those of its calls, newest first; `in_flight` is text that is not
/// in the journal yet.
pub(super) fn agent_status(state: &State, in_flight: &str, events: &[Value]) -> Value {
    let open = state.open.as_ref();
    let text: Option<String> = open.and_then(|open| open.step()).map(|step| {
        let is_text = |segment: &&quintet_kernel::session::Segment| {
            segment.channel == quintet_kernel::model::Channel::Text
        };
        let written = step.output.iter().filter(is_text).map(|segment| segment.text.as_str());
        written.chain([in_flight]).collect()
    });
    let own: Vec<&Call> = open.iter().flat_map(|open| open.calls()).collect();
    let is_own = |id: &str| own.iter().any(|call| call.id().as_str() == id);
    let earlier = events.iter().rev().filter(|event| event["type"] == "tool.call");
    let earlier = earlier.filter_map(|event| {
        let id = event["payload"]["toolCallId"].as_str().filter(|id| !is_own(id))?;
        Some(earlier_call(id, event, events))
    });
    let own = own.iter().map(|call| call_status(state, call, events));
    let calls: Vec<Value> = earlier.chain(own).collect();
    json!({
        "isRunning": state.busy(),
        "currentTurn": state.turns.len(),
        "messageCount": state.messages.len(),
        "tokenUsage": usage_of(state.usage),
        "model": state.current_model().to_string(),
        "tools": state.tools().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(),
        "currentTurnText": text,
        "currentTurnToolCalls": calls,
        "wasInterrupted": state.messages.last().is_some_and(|message| message.interrupted),
        "pending": pending(state),
    })
}

/// A call of an earlier step of the turn.
fn earlier_call(id: &str, started: &Value, events: &[Value]) -> Value {
    let ended = event_of(events, "tool.result", id);
    let failed = ended.is_some_and(|event| event["payload"]["isError"] == true);
    let shown = json!({
        "toolCallId": id,
        "toolName": started["payload"]["toolName"],
        "arguments": started["payload"]["arguments"],
        "status": if failed { "error" } else { "completed" },
        "startedAt": started["timestamp"],
    });
    with_result(shown, ended)
}

/// The newest event of this type about a call.
fn event_of<'a>(events: &'a [Value], kind: &str, call: &str) -> Option<&'a Value> {
    let is = |event: &&Value| event["type"] == kind && event["payload"]["toolCallId"] == call;
    events.iter().find(is)
}

fn with_result(mut shown: Value, ended: Option<&Value>) -> Value {
    if let Some(ended) = ended {
        shown["result"] = ended["payload"]["content"].clone();
        shown["isError"] = (ended["payload"]["isError"] == true).into();
        shown["completedAt"] = ended["timestamp"].clone();
    }
    shown
}

fn call_status(state: &State, call: &Call, events: &[Value]) -> Value {
    let id = call.id().as_str();
    let event = |kind: &str| event_of(events, kind, id);
    let (started, ended) = (event("tool.call"), event("tool.result"));
    let failed = ended.is_some_and(|event| event["payload"]["isError"] == true);
    let status = match &call.phase {
        CallPhase::Done(_) if failed => "error",
        CallPhase::Done(_) => "completed",
        CallPhase::Started(..) => "running",
        _ => "pending",
    };
    let shown = json!({
        "toolCallId": id,
        "toolName": call.request.tool,
        "arguments": call.request.input,
        "status": status,
        // A call that has not started has waited since the last event.
        "startedAt": started.map_or_else(
            || state.updated.to_rfc3339_millis().into(),
            |event| event["timestamp"].clone(),
        ),
    });
    with_result(shown, ended)
}

/// The size of the context and its parts.
pub(super) fn context(state: &State, models: &dyn Models) -> Value {
    let counts = count_prompt_tokens(state, models);
    let model = state.current_model();
    let limit = models.profile(model).and_then(|profile| profile.context_window);
    let rules = state.context.current();
    let tokens = |text: &str| models.count(model, text).tokens;
    let rules: u64 = rules.iter().map(|section| tokens(&section.text)).sum();
    let mut shown = snapshot(counts, limit, rules);
    shown["sessionId"] = state.id.as_str().into();
    shown["model"] = model.to_string().into();
    shown
}

/// Whether history would be compacted before the next model call, and whether a turn fits.
pub(super) fn space(state: &State, models: &dyn Models, expected: u64) -> Value {
    let (now, model) = (count_prompt_tokens(state, models).total().tokens, state.current_model());
    let limit = models.profile(model).and_then(|profile| profile.context_window);
    let after = now.saturating_add(expected);
    let percent = state.rules().limits.compact_at_percent;
    let exceeds = limit.is_some_and(|limit| after > limit);
    let is_due = limit.is_some_and(|limit| now * 100 >= limit.saturating_mul(percent));
    json!({
        "shouldCompact": is_due,
        "needsCompaction": is_due || exceeds,
        "wouldExceedLimit": exceeds,
        "canProceed": !exceeds,
        "currentTokens": now,
        "estimatedAfterTurn": after,
        "contextLimit": limit.unwrap_or(ASSUMED_CONTEXT_WINDOW),
    })
}

fn snapshot(counts: PromptTokens, limit: Option<u64>, rules: u64) -> Value {
    let total = counts.total().tokens;
    // The level is known only if the model's context window is.
    let share = limit.map(|limit| total as f64 / limit.max(1) as f64);
    let level = share.map_or("normal", level);
    json!({
        "currentTokens": total,
        "contextLimit": limit,
        "usagePercent": share.unwrap_or(0.0),
        "thresholdLevel": level,
        "level": level,
        "estimated": !counts.total().exact,
        "breakdown": {
            "systemPrompt": counts.system.tokens.saturating_sub(rules),
            "system": counts.system.tokens.saturating_sub(rules),
            "tools": counts.tools.tokens,
            "rules": rules.min(counts.system.tokens),
            "messages": counts.messages.tokens,
        },
    })
}

/// The level for a share of the context window.
pub(super) fn level(share: f64) -> &'static str {
    LEVEL_THRESHOLDS.iter().find(|(from, _)| share >= *from).map_or("normal", |(_, level)| level)
}

/// A model of the list.
pub(super) fn model(listed: &ModelInfo) -> Value {
    let about = &listed.about;
    let levels: Vec<String> =
        about.efforts.iter().map(|effort| format!("{effort:?}").to_lowercase()).collect();
    json!({
        "id": listed.model.to_string(),
        "name": if about.label.is_empty() { listed.model.model.clone() } else { about.label.clone() },
        "provider": listed.model.provider,
        // Clients of the original need a number.
        "contextWindow": listed.profile.context_window.unwrap_or(ASSUMED_CONTEXT_WINDOW),
        "contextWindowKnown": listed.profile.context_window.is_some(),
        "supportsTools": listed.profile.tools,
        "supportsImages": listed.profile.inputs.contains(&MediaKind::Image),
        "supportsThinking": about.thinking,
        "supportsReasoning": !levels.is_empty(),
        "reasoningLevels": levels,
        "available": listed.usable,
    })
}
