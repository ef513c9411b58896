//! Encodes items of a session as notifications, in the order in which they are sent.

use quintet_kernel::event::{Event, FailureCode, Record};
use quintet_kernel::model::{Channel, FailureKind, Usage};
use quintet_kernel::question::Question;
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{Item, QuestionId, Time, TurnId};
use serde_json::{Value, json};

use super::event_id::event_id;
use super::legacy;
use super::question::{is_question, question_arguments};
use super::session_context::{SessionContext, Step};
use super::stored_event::{event, result_text, stop_reason, usage_of};
use super::subagent;
use super::wire::{CONTEXT_OVERFLOW, Framing, Notification};

/// The frames for an item.
pub(super) fn encode(context: &mut SessionContext, framing: Framing, item: &Item) -> Vec<String> {
    context.apply(item);
    let (notifications, at) = match item {
        Item::Text { channel, text, at, .. } => {
            let name = match channel {
                Channel::Text => "agent.text_delta",
                Channel::Thought => "agent.thinking_delta",
            };
            (vec![Notification::both(name, json!({ "delta": &**text }))], *at)
        }
        Item::Progress { call, text, at, .. } => {
            let data = json!({
                "toolId": call.as_str(), "toolCallId": call.as_str(), "output": &**text,
            });
            (vec![Notification::both("agent.tool_progress", data)], *at)
        }
        Item::Event(record) => {
            let mut notifications = event_notifications(context, record);
            let event = match framing {
                Framing::JsonRpc => event(context, record),
                Framing::Legacy => legacy::stored(event(context, record)),
            };
            // The stored event comes first, because the other notifications refer to it.
            let session = context.session.as_str();
            let stored = json!({ "event": event, "sessionId": session });
            notifications.insert(0, Notification::both("events.new", stored));
            (notifications, record.at)
        }
    };
    if let Item::Event(record) = item {
        context.finish(record);
    }
    let session = context.session.as_str();
    notifications.into_iter().filter_map(|one| one.frame(framing, Some(session), at)).collect()
}

fn event_notifications(context: &SessionContext, record: &Record) -> Vec<Notification> {
    let at = record.at;
    match &record.event {
        Event::SessionCreated(origin) => vec![Notification::legacy(
            "session.created",
            json!({
                "sessionId": context.session.as_str(),
                "workingDirectory": origin.workspace.to_string_lossy(),
                "model": context.model,
            }),
        )],
        Event::Forked { parent, at } => vec![Notification::legacy(
            "session.forked",
            json!({
                "sourceSessionId": parent.as_str(),
                "sourceEventId": event_id(parent, *at),
                "newSessionId": context.session.as_str(),
                "newRootEventId": event_id(&context.session, record.seq),
            }),
        )],
        Event::ModelSwitched { model } => vec![Notification::legacy(
            "session.updated",
            json!({ "sessionId": context.session.as_str(), "model": model.to_string() }),
        )],
        Event::TurnStarted { .. } => vec![status("running")],
        Event::StepStarted { turn, .. } => step_started(context, turn, at),
        Event::CallStarted { call, tool, input, placement, errand, .. } => {
            let data = json!({
                "toolName": tool,
                "toolId": call.as_str(),
                "toolCallId": call.as_str(),
                "arguments": input,
            });
            let mut notifications = vec![Notification::both("agent.tool_start", data.clone())];
            let front_end = errand.as_ref().and_then(|errand| errand.front_end.as_deref());
            if *placement == Placement::Client && is_question(front_end) {
                notifications.push(Notification::both("agent.question", data));
                notifications.push(status("waiting"));
            }
            notifications
        }
        Event::CallCompleted { call, tool, outcome, .. } => {
            let text = result_text(outcome);
            vec![Notification::both(
                "agent.tool_end",
                json!({
                    "toolId": call.as_str(),
                    "toolCallId": call.as_str(),
                    "toolName": tool,
                    "result": text,
                    "success": outcome.ok(),
                    "isError": !outcome.ok(),
                    "output": outcome.ok().then_some(&text),
                    "error": failure(outcome),
                    "duration": context.call_duration(call, at),
                }),
            )]
        }
        Event::ApprovalRequested { call, tool, input, assessment, .. } => vec![
            Notification::both(
                "agent.approval",
                json!({
                    "toolName": tool,
                    "toolId": call.as_str(),
                    "toolCallId": call.as_str(),
                    "arguments": input,
                    "risk": assessment.risk.name(),
                    "preview": assessment.preview,
                }),
            ),
            status("waiting"),
        ],
        Event::QuestionAsked { tool, id, question, .. } => question_asked(tool, id, question),
        Event::ApprovalAnswered { .. }
        | Event::QuestionAnswered { .. }
        | Event::TurnReleased { .. } => vec![status("running")],
        Event::TurnHeld { turn, reason } => held(turn, reason),
        Event::TurnCompleted { turn, usage, .. } => turn_ended(context, (turn, *usage, at), None),
        Event::TurnFailed { turn, code, message, usage } => {
            turn_ended(context, (turn, *usage, at), Some(error(*code, message)))
        }
        Event::TurnCancelled { turn, usage, .. } => {
            let aborted = json!({ "message": "aborted", "code": "aborted" });
            turn_ended(context, (turn, *usage, at), Some(aborted))
        }
        Event::Subagent { call, session, news, .. } => {
            subagent::notifications(context, (call.as_str(), session, at), news)
        }
        Event::Compacted { .. } => {
            let payload = event(context, record)["payload"].clone();
            vec![Notification {
                json_rpc: Some("context.compaction"),
                legacy: Some("agent.compaction"),
                data: payload,
            }]
        }
        Event::SessionClosed { .. } => {
            vec![status("ended"), Notification::legacy("session.ended", json!({}))]
        }
        _ => Vec::new(),
    }
}

fn question_asked(tool: &str, id: &QuestionId, question: &Question) -> Vec<Notification> {
    let data = json!({
        "toolName": tool,
        "toolId": id.as_str(),
        "toolCallId": id.as_str(),
        "arguments": question_arguments(question),
    });
    vec![Notification::both("agent.question", data), status("waiting")]
}

/// A turn that a crash interrupted waits for an approval, as a call does.
fn held(turn: &TurnId, reason: &str) -> Vec<Notification> {
    let data = json!({
        "toolName": "resume_turn",
        "toolId": turn.as_str(),
        "toolCallId": turn.as_str(),
        "arguments": {},
        "risk": "low",
        "preview": reason,
    });
    vec![Notification::both("agent.approval", data), status("waiting")]
}

/// The notifications of a model call, which the original server calls a turn.
fn step_started(context: &SessionContext, turn: &TurnId, at: Time) -> Vec<Notification> {
    let before = context.step_before().map(|step| step_ended(context, turn, (step, at)));
    let begins = Notification::legacy("agent.turn_start", json!({ "turn": context.nth(turn) }));
    before.into_iter().chain([begins]).collect()
}

fn step_ended(context: &SessionContext, turn: &TurnId, (step, at): (&Step, Time)) -> Notification {
    let took = u64::try_from(at.since(step.started).as_millis()).unwrap_or(u64::MAX);
    Notification::legacy(
        "agent.turn_end",
        json!({
            "turn": context.nth(turn),
            "duration": took,
            "tokenUsage": usage_of(step.usage),
            "stopReason": step.finish.as_ref().map(stop_reason),
            "model": context.model,
        }),
    )
}

/// The reason why a call failed; its output if no other reason is known.
fn failure(outcome: &Outcome) -> Option<String> {
    let text = || result_text(outcome);
    (!outcome.ok()).then(|| outcome.error.clone().unwrap_or_else(text))
}

/// The notifications of the end of a turn, with the reason if it failed.
fn turn_ended(
    context: &SessionContext,
    of: (&TurnId, Usage, Time),
    error: Option<Value>,
) -> Vec<Notification> {
    let (turn, usage, at) = of;
    let aborted = error.as_ref().is_some_and(|error| error["code"] == "aborted");
    let tokens = usage_of(usage);
    let mut notifications = Vec::new();
    match &error {
        None => notifications.push(Notification::json_rpc(
            "agent.turn_complete",
            json!({ "turn": context.nth(turn), "turnId": turn.as_str(), "tokenUsage": tokens, "duration": context.turn_duration(at) }),
        )),
        Some(error) if !aborted => notifications.push(Notification::both("agent.error", error.clone())),
        Some(_) => {}
    }
    notifications.push(status(match (&error, aborted) {
        (None, _) => "idle",
        (Some(_), true) => "aborted",
        (Some(_), false) => "error",
    }));
    notifications.extend(context.step().map(|step| step_ended(context, turn, (step, at))));
    notifications.push(Notification::legacy(
        "agent.complete",
        json!({
            "turns": context.step().map_or(0, |step| step.nth),
            "tokenUsage": tokens,
            "success": error.is_none(),
            "error": error.as_ref().map(|error| error["message"].clone()),
        }),
    ));
    notifications.push(Notification::legacy("agent.ready", json!({})));
    notifications
}

fn error(code: FailureCode, message: &str) -> Value {
    let number =
        (code == FailureCode::Model(FailureKind::ContextOverflow)).then_some(CONTEXT_OVERFLOW);
    json!({ "message": message, "code": code.name(), "rpcCode": number })
}

pub(super) fn status(status: &'static str) -> Notification {
    Notification::both("session.status", json!({ "status": status }))
}
