//! News: what clients are told of an item, in the order in which they are told it.

use quintet_kernel::event::{Event, FailureCode, Record};
use quintet_kernel::model::{Channel, FailureKind, Usage};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{Item, Time, TurnId};
use serde_json::{Value, json};

use super::book::{Book, Step};
use super::original;
use super::place::event_id;
use super::question::is_question;
use super::stored::{event, result_text, stop_reason, usage_of};
use super::subagent;
use super::wire::{CONTEXT_OVERFLOW, Manner, News};

/// The frames that tell a client of an item.
pub(super) fn encode(book: &mut Book, manner: Manner, item: &Item) -> Vec<String> {
    book.learn(item);
    let (news, at) = match item {
        Item::Text { channel, text, at, .. } => {
            let name = match channel {
                Channel::Text => "agent.text_delta",
                Channel::Thought => "agent.thinking_delta",
            };
            (vec![News::both(name, json!({ "delta": &**text }))], *at)
        }
        Item::Progress { call, text, at, .. } => {
            let data = json!({
                "toolId": call.as_str(), "toolCallId": call.as_str(), "output": &**text,
            });
            (vec![News::both("agent.tool_progress", data)], *at)
        }
        Item::Event(record) => {
            let mut news = of_event(book, record);
            let event = match manner {
                Manner::Plain => event(book, record),
                Manner::Native => original::stored(event(book, record)),
            };
            // The stored event comes first: it is what the rest is about.
            let session = book.session.as_str();
            let stored = json!({ "event": event, "sessionId": session });
            news.insert(0, News::both("events.new", stored));
            (news, record.at)
        }
    };
    if let Item::Event(record) = item {
        book.close(record);
    }
    let session = book.session.as_str();
    news.into_iter().filter_map(|news| news.frame(manner, Some(session), at)).collect()
}

fn of_event(book: &Book, record: &Record) -> Vec<News> {
    let at = record.at;
    match &record.event {
        Event::SessionCreated(origin) => vec![News::native(
            "session.created",
            json!({
                "sessionId": book.session.as_str(),
                "workingDirectory": origin.workspace.to_string_lossy(),
                "model": book.model,
            }),
        )],
        Event::Forked { parent, at } => vec![News::native(
            "session.forked",
            json!({
                "sourceSessionId": parent.as_str(),
                "sourceEventId": event_id(parent, *at),
                "newSessionId": book.session.as_str(),
                "newRootEventId": event_id(&book.session, record.seq),
            }),
        )],
        Event::ModelSwitched { model } => vec![News::native(
            "session.updated",
            json!({ "sessionId": book.session.as_str(), "model": model.to_string() }),
        )],
        Event::TurnStarted { .. } => vec![status("running")],
        Event::StepStarted { turn, .. } => step_started(book, turn, at),
        Event::CallStarted { call, tool, input, placement, errand, .. } => {
            let data = json!({
                "toolName": tool,
                "toolId": call.as_str(),
                "toolCallId": call.as_str(),
                "arguments": input,
            });
            let mut news = vec![News::both("agent.tool_start", data.clone())];
            let front_end = errand.as_ref().and_then(|errand| errand.front_end.as_deref());
            if *placement == Placement::Client && is_question(front_end) {
                news.push(News::both("agent.question", data));
                news.push(status("waiting"));
            }
            news
        }
        Event::CallCompleted { call, tool, outcome, .. } => {
            let text = result_text(outcome);
            vec![News::both(
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
                    "duration": book.call_took(call, at),
                }),
            )]
        }
        Event::ApprovalRequested { call, tool, input, assessment, .. } => vec![
            News::both(
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
        Event::ApprovalAnswered { .. } | Event::TurnReleased { .. } => vec![status("running")],
        Event::TurnHeld { turn, reason } => held(turn, reason),
        Event::TurnCompleted { turn, usage, .. } => over(book, (turn, *usage, at), None),
        Event::TurnFailed { turn, code, message, usage } => {
            over(book, (turn, *usage, at), Some(error(*code, message)))
        }
        Event::TurnCancelled { turn, usage, .. } => {
            let aborted = json!({ "message": "aborted", "code": "aborted" });
            over(book, (turn, *usage, at), Some(aborted))
        }
        Event::Subagent { call, session, news, .. } => {
            subagent::news(book, (call.as_str(), session, at), news)
        }
        Event::Compacted { .. } => {
            let told = event(book, record)["payload"].clone();
            vec![News {
                plain: Some("context.compaction"),
                native: Some("agent.compaction"),
                data: told,
            }]
        }
        Event::SessionClosed { .. } => {
            vec![status("ended"), News::native("session.ended", json!({}))]
        }
        _ => Vec::new(),
    }
}

/// Whether a turn that is held may go on is asked like whether a call may run.
fn held(turn: &TurnId, reason: &str) -> Vec<News> {
    let data = json!({
        "toolName": "resume_turn",
        "toolId": turn.as_str(),
        "toolCallId": turn.as_str(),
        "arguments": {},
        "risk": "low",
        "preview": reason,
    });
    vec![News::both("agent.approval", data), status("waiting")]
}

/// A client of the original takes every question to a model for a turn.
fn step_started(book: &Book, turn: &TurnId, at: Time) -> Vec<News> {
    let before = book.step_before().map(|step| step_ended(book, turn, (step, at)));
    let begins = News::native("agent.turn_start", json!({ "turn": book.nth(turn) }));
    before.into_iter().chain([begins]).collect()
}

fn step_ended(book: &Book, turn: &TurnId, (step, at): (&Step, Time)) -> News {
    let took = u64::try_from(at.since(step.began).as_millis()).unwrap_or(u64::MAX);
    News::native(
        "agent.turn_end",
        json!({
            "turn": book.nth(turn),
            "duration": took,
            "tokenUsage": usage_of(step.usage),
            "stopReason": step.finish.as_ref().map(stop_reason),
            "model": book.model,
        }),
    )
}

/// Why a call failed; its words, if nothing else is known.
fn failure(outcome: &Outcome) -> Option<String> {
    let words = || result_text(outcome);
    (!outcome.ok()).then(|| outcome.error.clone().unwrap_or_else(words))
}

/// A turn is over: well, or for this reason.
fn over(book: &Book, of: (&TurnId, Usage, Time), error: Option<Value>) -> Vec<News> {
    let (turn, usage, at) = of;
    let aborted = error.as_ref().is_some_and(|error| error["code"] == "aborted");
    let tokens = usage_of(usage);
    let mut news = Vec::new();
    match &error {
        None => news.push(News::plain(
            "agent.turn_complete",
            json!({ "turn": book.nth(turn), "turnId": turn.as_str(), "tokenUsage": tokens, "duration": book.turn_took(at) }),
        )),
        Some(error) if !aborted => news.push(News::both("agent.error", error.clone())),
        Some(_) => {}
    }
    news.push(status(match (&error, aborted) {
        (None, _) => "idle",
        (Some(_), true) => "aborted",
        (Some(_), false) => "error",
    }));
    news.extend(book.step().map(|step| step_ended(book, turn, (step, at))));
    news.push(News::native(
        "agent.complete",
        json!({
            "turns": book.step().map_or(0, |step| step.nth),
            "tokenUsage": tokens,
            "success": error.is_none(),
            "error": error.as_ref().map(|error| error["message"].clone()),
        }),
    ));
    news.push(News::native("agent.ready", json!({})));
    news
}

fn error(code: FailureCode, message: &str) -> Value {
    let number =
        (code == FailureCode::Model(FailureKind::ContextOverflow)).then_some(CONTEXT_OVERFLOW);
    json!({ "message": message, "code": code.name(), "rpcCode": number })
}

pub(super) fn status(status: &'static str) -> News {
    News::both("session.status", json!({ "status": status }))
}
