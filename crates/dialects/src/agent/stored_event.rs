//! Encodes events for a session's history.

use quintet_kernel::change::changed_paths;
use quintet_kernel::event::{ApprovalDecision, Event, NewSession, Record};
use quintet_kernel::message::{MediaKind, Part, Role, text_of};
use quintet_kernel::model::{Channel, FinishReason, TokenCount, Usage};
use quintet_kernel::question::QuestionAnswer;
use quintet_kernel::tool::{Assessment, Outcome};
use quintet_kernel::toolset::ClientTool;
use serde_json::{Value, json};

use super::event_id::event_id;
use super::session_context::SessionContext;
use super::subagent;

/// Encodes an event. `context` must have applied the event and not finished it.
pub(super) fn event(context: &SessionContext, record: &Record) -> Value {
    let (kind, payload) = content(context, record);
    let parent = match &record.event {
        Event::Forked { parent, at } => Some(event_id(parent, *at)),
        _ => (context.last > 0).then(|| event_id(&context.session, context.last)),
    };
    json!({
        "id": event_id(&context.session, record.seq),
        "parentId": parent,
        "sessionId": context.session.as_str(),
        "workspaceId": context.workspace,
        "timestamp": record.at.to_rfc3339_millis(),
        "type": kind,
        "sequence": record.seq,
        "payload": payload,
    })
}

fn content(context: &SessionContext, record: &Record) -> (&'static str, Value) {
    match &record.event {
        Event::SessionCreated(origin) => ("session.start", start(context, origin)),
        Event::Forked { parent, at } => (
            "session.fork",
            json!({ "sourceSessionId": parent.as_str(), "sourceEventId": event_id(parent, *at) }),
        ),
        Event::SessionClosed { reason, summary } => {
            let reason = reason.as_deref().unwrap_or("completed");
            ("session.end", json!({ "reason": reason, "summary": summary }))
        }
        Event::Labelled { key, value } => ("session.label", json!({ "key": key, "value": value })),
        Event::ModelSwitched { model } => (
            "config.model_switch",
            json!({ "previousModel": context.model, "newModel": model.to_string() }),
        ),
        Event::ToolsChosen(toolset) => {
            let names = |tools: &[ClientTool]| -> Vec<String> {
                tools.iter().map(|tool| tool.name.clone()).collect()
            };
            let data = json!({ "daemon": toolset.daemon, "client": names(&toolset.client) });
            ("config.tools", data)
        }
        Event::Instructed { system_prompt } => {
            ("config.prompt_update", json!({ "systemPrompt": system_prompt }))
        }
        Event::Moved { workspace } => {
            ("config.workspace", json!({ "workingDirectory": workspace }))
        }
        Event::Forgotten { upto } => {
            ("context.cleared", json!({ "uptoMessageId": upto.as_str(), "reason": "replaced" }))
        }
        Event::Superseded { from } => ("turn.superseded", json!({ "fromTurnId": from.as_str() })),
        Event::MemorySaved { path, .. } => ("memory.saved", json!({ "path": path })),
        Event::MemoryNotSaved { reason, .. } => ("memory.not_saved", json!({ "reason": reason })),
        Event::AttachmentAdded(file) => (
            "file.attached",
            json!({ "name": file.name, "mimeType": file.mime, "size": file.size }),
        ),
        Event::Compacted { summary, tokens_before, tokens_after, turns, .. } => {
            let after = tokens_after.unwrap_or_else(|| TokenCount::guess(summary).tokens);
            (
                "context.compaction",
                json!({
                    "turnsBefore": turns.before,
                    "turnsAfter": turns.after,
                    "tokensSaved": tokens_before.saturating_sub(after),
                    "tokensBefore": tokens_before,
                    "tokensAfter": after,
                    "summary": summary,
                    "originalTokens": tokens_before,
                    "compactedTokens": after,
                    "compressionRatio": after as f64 / (*tokens_before).max(1) as f64,
                    "range": {
                        "from": event_id(&context.session, 1),
                        "to": event_id(&context.session, context.last),
                    },
                }),
            )
        }
        Event::CompactionRequested { tokens, .. } => {
            ("context.compaction_started", json!({ "tokensBefore": tokens }))
        }
        Event::CompactionFailed { reason } => {
            ("context.compaction_failed", json!({ "reason": reason }))
        }
        Event::RevertRequested { turn } => ("file.revert", json!({ "turnId": turn.as_str() })),
        Event::Reverted { turn, files, more, reapplied } => {
            let kind = if *reapplied { "file.reapplied" } else { "file.reverted" };
            let mut data = json!({ "turnId": turn.as_str(), "files": files });
            if *more > 0 {
                data["more"] = json!(more);
            }
            (kind, data)
        }
        Event::RevertFailed { turn, reason } => {
            ("file.revert_failed", json!({ "turnId": turn.as_str(), "reason": reason }))
        }
        _ => of_turn(context, record),
    }
}

/// Events of a turn, with the turn's number.
fn of_turn(context: &SessionContext, record: &Record) -> (&'static str, Value) {
    let (kind, mut payload) = of_messages(context, record);
    if let Some(turn) = record.event.turn() {
        if let Some(nth) = context.nth(turn)
            && payload.get("turn").is_none()
        {
            payload["turn"] = nth.into();
        }
        payload["turnId"] = turn.as_str().into();
    }
    (kind, payload)
}

fn of_messages(context: &SessionContext, record: &Record) -> (&'static str, Value) {
    match &record.event {
        Event::MessageAdded { message, role, parts, options, .. } => message_event(
            *role,
            json!({
                "messageId": message.as_str(),
                "content": message_content(*role, parts),
                "imageCount": images(parts),
                "queued": options.queued,
            }),
        ),
        Event::ModelCompleted { message, finish, calls, usage, by, .. } => {
            let model = by.as_ref().map_or_else(|| context.model.clone(), ToString::to_string);
            let mut content = output_blocks(context);
            content.extend(calls.iter().map(|call| {
                json!({ "type": "tool_use", "id": call.id.as_str(), "name": call.tool, "input": call.input })
            }));
            let thinks = context.output.iter().any(|(channel, _)| *channel == Channel::Thought);
            (
                "message.assistant",
                json!({
                    "messageId": message.as_ref().map(|message| message.as_str()),
                    "content": content,
                    "tokenUsage": usage_of(*usage),
                    "stopReason": stop_reason(finish),
                    "model": model,
                    "hasThinking": thinks,
                }),
            )
        }
        Event::StepInterrupted { message, reason, .. } => (
            "notification.interrupted",
            json!({
                "messageId": message.as_ref().map(|message| message.as_str()),
                "reason": reason,
                "content": output_blocks(context),
            }),
        ),
        Event::StepStarted { model, .. } => ("turn.step", json!({ "model": model.to_string() })),
        Event::ModelRetrying { attempt, wait_ms, reason, .. } => (
            "error.provider",
            json!({ "message": reason, "attempt": attempt, "retryAfterMs": wait_ms }),
        ),
        Event::ContextGathered { sections, tokens, .. } => {
            let titles: Vec<&str> = sections.iter().map(|section| &*section.title).collect();
            ("rules.loaded", json!({ "sections": titles, "tokens": tokens }))
        }
        Event::TurnStarted { attempt, .. } => ("turn.start", json!({ "attempt": attempt })),
        Event::TurnCompleted { usage, verified, .. } => (
            "turn.end",
            json!({ "status": "completed", "tokenUsage": usage_of(*usage), "verified": verified }),
        ),
        Event::TurnCancelled { reason, usage, .. } => (
            "turn.end",
            json!({ "status": "aborted", "reason": reason, "tokenUsage": usage_of(*usage) }),
        ),
        Event::TurnFailed { code, message, usage, .. } => (
            "error.agent",
            json!({ "error": message, "code": code.name(), "tokenUsage": usage_of(*usage) }),
        ),
        Event::StopRequested { .. } => ("turn.stopping", json!({})),
        Event::TurnResumed { after_ms, .. } => ("turn.resumed", json!({ "afterMs": after_ms })),
        Event::TurnHeld { reason, .. } => ("turn.held", json!({ "reason": reason })),
        Event::TurnReleased { .. } => ("turn.released", json!({})),
        _ => of_calls(context, record),
    }
}

fn of_calls(context: &SessionContext, record: &Record) -> (&'static str, Value) {
    match &record.event {
        Event::CallStarted { call, tool, input, .. } => (
            "tool.call",
            json!({ "toolId": call.as_str(), "toolCallId": call.as_str(), "name": tool, "toolName": tool, "arguments": input }),
        ),
        Event::CallCompleted { call, tool, outcome, .. } => {
            let duration = context.call_duration(call, record.at);
            let files = changed_paths(&outcome.changes);
            (
                "tool.result",
                json!({
                    "toolId": call.as_str(),
                    "toolCallId": call.as_str(),
                    "name": tool,
                    "content": result_text(outcome),
                    "isError": !outcome.ok(),
                    "success": outcome.ok(),
                    "error": outcome.error,
                    "duration": duration,
                    "affectedFiles": files,
                }),
            )
        }
        Event::Subagent { call, session, news, .. } => {
            subagent::stored(context, (call.as_str(), session, record.at), news)
        }
        Event::VerificationRequested { call, .. } => (
            "tool.verification",
            json!({ "toolId": call.id.as_str(), "toolCallId": call.id.as_str(), "name": call.tool, "arguments": call.input }),
        ),
        Event::ReviewRequested { call, tool, assessment, .. } => {
            let mut payload = assessment_json(assessment);
            payload["toolId"] = call.as_str().into();
            payload["name"] = tool.as_str().into();
            ("tool.review", payload)
        }
        Event::Reviewed { call, tool, answer, comment, .. } => (
            "tool.reviewed",
            json!({ "toolId": call.as_str(), "name": tool, "answer": answer.map(decision_name), "comment": comment }),
        ),
        Event::ApprovalRequested { call, tool, input, assessment, expires, .. } => {
            let mut payload = assessment_json(assessment);
            payload["toolId"] = call.as_str().into();
            payload["toolCallId"] = call.as_str().into();
            payload["name"] = tool.as_str().into();
            payload["arguments"] = input.clone();
            payload["expiresAt"] = json!(expires.map(|at| at.to_rfc3339_millis()));
            ("tool.approval_requested", payload)
        }
        Event::ApprovalAnswered { call, tool, answer, reason, .. } => (
            "tool.approval_answered",
            json!({ "toolId": call.as_str(), "toolCallId": call.as_str(), "name": tool, "answer": decision_name(*answer), "reason": reason }),
        ),
        Event::QuestionAsked { call, tool, id, question, expires, .. } => (
            "tool.question_asked",
            json!({
                "toolId": id.as_str(),
                "toolCallId": call.as_str(),
                "name": tool,
                "arguments": question.as_input(),
                "expiresAt": expires.map(|at| at.to_rfc3339_millis()),
            }),
        ),
        Event::QuestionAnswered { call, tool, id, answer, reason, .. } => {
            let (decision_name, content) = match answer {
                QuestionAnswer::Accepted { content } => ("accepted", Some(content)),
                QuestionAnswer::Declined => ("declined", None),
                QuestionAnswer::Cancelled => ("cancelled", None),
            };
            let payload = json!({
                "toolId": id.as_str(),
                "toolCallId": call.as_str(),
                "name": tool,
                "answer": decision_name,
                "content": content,
                "reason": reason,
            });
            ("tool.question_answered", payload)
        }
        // All current events are handled above; a new one is shown without content.
        _ => ("event.other", json!({})),
    }
}

fn start(context: &SessionContext, origin: &NewSession) -> Value {
    // The context was given the session's model before.
    let model = context.model.as_str();
    json!({
        "workingDirectory": origin.workspace.to_string_lossy(),
        "model": model,
        "provider": model.split('/').next(),
        "systemPrompt": origin.system_prompt,
        "title": origin.labels.get("title"),
    })
}

fn message_event(role: Role, payload: Value) -> (&'static str, Value) {
    let kind = match role {
        Role::User => "message.user",
        Role::Assistant => "message.assistant",
        Role::System => "message.system",
        Role::Tool => "message.tool",
    };
    (kind, payload)
}

/// The content of a message: a string if a user's message has only text, otherwise blocks.
fn message_content(role: Role, parts: &[Part]) -> Value {
    let only_text = parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Context(_)));
    match role {
        Role::User | Role::System if only_text => text_of(parts).into(),
        _ => parts.iter().filter_map(block).collect::<Vec<_>>().into(),
    }
}

/// A part as a block of content.
pub(super) fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Context(_) => return None,
        Part::Thought(text) => json!({ "type": "thinking", "thinking": text }),
        Part::Media { kind, name, mime } => json!({
            "type": match kind { MediaKind::Image => "image", MediaKind::Audio | MediaKind::File => "document" },
            "name": name,
            "mimeType": mime,
        }),
        Part::Call { call, tool, input } => {
            json!({ "type": "tool_use", "id": call.as_str(), "name": tool, "input": input })
        }
    })
}

fn images(parts: &[Part]) -> usize {
    let image = |part: &&Part| matches!(part, Part::Media { kind: MediaKind::Image, .. });
    parts.iter().filter(image).count()
}

fn output_blocks(context: &SessionContext) -> Vec<Value> {
    let block = |(channel, text): &(Channel, String)| match channel {
        Channel::Text => json!({ "type": "text", "text": text }),
        Channel::Thought => json!({ "type": "thinking", "thinking": text }),
    };
    context.output.iter().map(block).collect()
}

/// The result of a call as text.
pub(super) fn result_text(outcome: &Outcome) -> String {
    text_of(&outcome.parts)
}

pub(super) fn assessment_json(assessment: &Assessment) -> Value {
    json!({
        "risk": assessment.risk.name(),
        "reasons": assessment.reasons,
        "reversible": assessment.reversible,
        "preview": assessment.preview,
    })
}

pub(super) fn decision_name(answer: ApprovalDecision) -> &'static str {
    match answer {
        ApprovalDecision::Allow => "allow",
        ApprovalDecision::Deny => "deny",
    }
}

/// Token counts, with the field names of both servers.
pub(super) fn usage_of(usage: Usage) -> Value {
    json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadTokens": usage.cached,
        "cacheCreationTokens": usage.cache_written,
        "input": usage.input,
        "output": usage.output,
    })
}

pub(super) fn stop_reason(finish: &FinishReason) -> &str {
    match finish {
        FinishReason::Stop => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Refused => "refusal",
        FinishReason::Other(decision_name) => decision_name,
    }
}
