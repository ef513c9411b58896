//! Encodes the events of sessions for the page.
//!
//! Every event becomes one JSON object with a `type`, the number `seq`, the time `at` and a `position`
//! at which a stream can continue. Pieces of text have the offset at which they begin, in bytes.

use quintet_kernel::event::{
    ApprovalDecision, DecidedBy, Event, Record, RememberScope, StopCause, SubagentUpdate,
};
use quintet_kernel::message::{CallArtifact, Part, Role};
use quintet_kernel::model::{Channel, Usage};
use quintet_kernel::question::QuestionAnswer;
use quintet_kernel::tool::{Assessment, Ending, Outcome, Placement};
use quintet_kernel::{Cursor, Item, StepId, Time, TurnId};
use serde_json::{Value, json};

/// The most bytes of a call's output that the page is sent.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// One item of a session.
pub(super) fn item(item: &Item) -> Value {
    match item {
        Item::Event(record) => event(record),
        Item::Text { position, turn, step, channel, text, at, .. } => {
            Text { turn, step, channel: *channel, text, at: *at, end: *position }.encode()
        }
        Item::Progress { turn, call, text, at } => json!({
            "type": "progress", "at": at.micros(), "turn": turn.as_str(), "call": call.as_str(),
            "text": text,
        }),
    }
}

/// Text of a step that ends at a position.
pub(super) struct Text<'a> {
    pub(super) turn: &'a TurnId,
    pub(super) step: &'a StepId,
    pub(super) channel: Channel,
    pub(super) text: &'a str,
    pub(super) at: Time,
    pub(super) end: Cursor,
}

impl Text<'_> {
    pub(super) fn encode(&self) -> Value {
        json!({
            "type": "text", "seq": self.end.seq, "position": self.end.to_string(),
            "at": self.at.micros(), "turn": self.turn.as_str(), "step": self.step.as_str(),
            "channel": match self.channel { Channel::Text => "text", Channel::Thought => "thought" },
            "offset": self.end.offset.saturating_sub(self.text.len() as u64), "text": self.text,
        })
    }
}

fn event(record: &Record) -> Value {
    let mut body = body(&record.event);
    body["seq"] = record.seq.into();
    body["position"] = record.seq.to_string().into();
    body["at"] = record.at.micros().into();
    body
}

#[expect(clippy::too_many_lines, reason = "one arm for each event")]
fn body(event: &Event) -> Value {
    match event {
        Event::SessionCreated(origin) => json!({
            "type": "session", "workspace": origin.workspace, "system": origin.system_prompt,
            "model": origin.model.as_ref().map(ToString::to_string),
            "parent": origin.labels.get("parent"),
        }),
        Event::Forked { parent, at } => {
            json!({ "type": "forked", "parent": parent.as_str(), "from": at })
        }
        Event::Labelled { key, value } => json!({ "type": "label", "key": key, "value": value }),
        Event::ModelSwitched { model } => json!({ "type": "model", "model": model.to_string() }),
        Event::Instructed { system_prompt } => {
            json!({ "type": "instructed", "system": system_prompt })
        }
        Event::Moved { workspace } => json!({ "type": "moved", "workspace": workspace }),
        Event::Forgotten { upto } => json!({ "type": "forgotten", "message": upto.as_str() }),
        Event::Superseded { from } => json!({ "type": "superseded", "turn": from.as_str() }),
        Event::ToolsChosen(_) => json!({ "type": "tools" }),
        Event::AttachmentAdded(file) => json!({
            "type": "attachment", "name": file.name, "mime": file.mime, "size": file.size,
        }),
        Event::MessageAdded { message, turn, role, parts, options, nth: _ } => json!({
            "type": "message", "message": message.as_str(), "turn": turn.as_str(),
            "role": role_name(*role), "parts": self::parts(parts), "queued": options.queued,
            "recalled": options.recalled, "key": options.key,
        }),
        Event::TurnStarted { turn, attempt, options } => json!({
            "type": "turn_started", "turn": turn.as_str(), "attempt": attempt,
            "model": options.model.as_ref().map(ToString::to_string),
        }),
        Event::ContextGathered { turn, sections, tokens } => {
            let titles: Vec<&str> = sections.iter().map(|section| &*section.title).collect();
            json!({ "type": "context", "turn": turn.as_str(), "sections": titles, "tokens": tokens })
        }
        Event::StepStarted { turn, step, model, context_window, shortened: _ } => json!({
            "type": "step", "turn": turn.as_str(), "step": step.as_str(),
            "model": model.to_string(), "window": context_window,
        }),
        Event::TextAppended { turn, step, offset, channel, text, pieces: _ } => {
            let end = Cursor { seq: 0, offset: offset.saturating_add(text.len() as u64) };
            Text { turn, step, channel: *channel, text, at: Time::default(), end }.encode()
        }
        Event::ModelRetrying { turn, step, attempt, wait_ms, reason } => json!({
            "type": "retrying", "turn": turn.as_str(), "step": step.as_str(), "attempt": attempt,
            "wait_ms": wait_ms, "reason": reason,
        }),
        Event::ModelCompleted { turn, step, message: _, finish, calls, usage, sealed: _, by } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!({ "call": call.id.as_str(), "tool": call.tool, "input": call.input }))
                .collect();
            json!({
                "type": "answer", "turn": turn.as_str(), "step": step.as_str(),
                "finish": finish.name(), "calls": calls, "usage": self::usage(*usage),
                "by": by.as_ref().map(ToString::to_string),
            })
        }
        Event::StepInterrupted { turn, step, message: _, reason, context_window: _ } => json!({
            "type": "interrupted", "turn": turn.as_str(), "step": step.as_str(), "reason": reason,
        }),
        Event::VerificationRequested { turn, call } => json!({
            "type": "verification", "turn": turn.as_str(), "call": call.id.as_str(),
            "tool": call.tool, "input": call.input,
        }),
        Event::ReviewRequested { turn, call, tool, assessment: _ } => json!({
            "type": "review", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
        }),
        Event::Reviewed { turn, call, tool, answer, comment, usage } => json!({
            "type": "reviewed", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "answer": answer.map(answer_name), "comment": comment, "usage": self::usage(*usage),
        }),
        Event::ApprovalRequested { turn, call, tool, input, assessment, expires } => json!({
            "type": "question", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "input": input, "assessment": self::assessment(assessment),
            "expires": expires.map(Time::micros),
        }),
        Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember } => json!({
            "type": "answered", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "answer": answer_name(*answer), "reason": reason,
            "by": by_name(*by),
            "remember": match remember {
                RememberScope::Once => "once",
                RememberScope::Same => "same",
                RememberScope::Similar => "similar",
            },
        }),
        Event::CallStarted { turn, call, tool, input, kind, placement, errand: _ } => json!({
            "type": "call", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "input": input, "kind": kind.name(),
            "placement": match placement { Placement::Daemon => "daemon", Placement::Client => "client" },
        }),
        Event::QuestionAsked { turn, call, tool, id, question, expires } => json!({
            "type": "user_question", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "question": id.as_str(), "input": question.as_input(),
            "expires": expires.map(Time::micros),
        }),
        Event::QuestionAnswered { turn, call, tool, id, answer, reason, by } => json!({
            "type": "user_answer", "turn": turn.as_str(), "call": call.as_str(), "tool": tool,
            "question": id.as_str(), "reason": reason, "by": by.map(by_name),
            "answer": match answer {
                QuestionAnswer::Accepted { .. } => "accepted",
                QuestionAnswer::Declined => "declined",
                QuestionAnswer::Cancelled => "cancelled",
            },
            "content": match answer {
                QuestionAnswer::Accepted { content } => json!(content),
                QuestionAnswer::Declined | QuestionAnswer::Cancelled => Value::Null,
            },
        }),
        Event::CallClaimed { turn, call, by } => json!({
            "type": "claimed", "turn": turn.as_str(), "call": call.as_str(), "by": by.name,
        }),
        Event::ClaimHolderLost { turn, call, by, until } => json!({
            "type": "claim_lost", "turn": turn.as_str(), "call": call.as_str(), "by": by.name,
            "until": until.micros(),
        }),
        Event::ClaimReleased { turn, call } => json!({
            "type": "claim_released", "turn": turn.as_str(), "call": call.as_str(),
        }),
        Event::CallCompleted { turn, call, tool, message: _, outcome } => {
            let mut body = self::outcome(outcome);
            body["type"] = "result".into();
            body["turn"] = turn.as_str().into();
            body["call"] = call.as_str().into();
            body["tool"] = tool.as_str().into();
            body
        }
        Event::Subagent { turn, call, session, news } => json!({
            "type": "subagent", "turn": turn.as_str(), "call": call.as_str(),
            "subagent": session.as_str(), "news": self::news(news),
        }),
        Event::StopRequested { turn, cause } => json!({
            "type": "stopping", "turn": turn.as_str(),
            "reason": match cause {
                StopCause::Cancelled { reason } => reason.as_deref(),
                StopCause::Failed { message, .. } => Some(message.as_str()),
            },
        }),
        Event::TurnResumed { turn, after_ms } => {
            json!({ "type": "resumed", "turn": turn.as_str(), "after_ms": after_ms })
        }
        Event::TurnHeld { turn, reason } => {
            json!({ "type": "held", "turn": turn.as_str(), "reason": reason })
        }
        Event::TurnReleased { turn } => json!({ "type": "released", "turn": turn.as_str() }),
        Event::TurnCompleted { turn, usage, verified } => json!({
            "type": "completed", "turn": turn.as_str(), "usage": self::usage(*usage),
            "verified": verified,
        }),
        Event::TurnFailed { turn, code, message, usage } => json!({
            "type": "failed", "turn": turn.as_str(), "code": code.name(), "message": message,
            "usage": self::usage(*usage),
        }),
        Event::TurnCancelled { turn, reason, usage } => json!({
            "type": "cancelled", "turn": turn.as_str(), "reason": reason,
            "usage": self::usage(*usage),
        }),
        Event::RevertRequested { turn } => json!({ "type": "undoing", "turn": turn.as_str() }),
        Event::Reverted { turn, files, more, reapplied } => json!({
            "type": if *reapplied { "redone" } else { "undone" },
            "turn": turn.as_str(), "files": files, "more": more,
        }),
        Event::RevertFailed { turn, reason } => {
            json!({ "type": "undo_failed", "turn": turn.as_str(), "reason": reason })
        }
        Event::CompactionRequested { upto: _, tokens, overflow: _ } => {
            json!({ "type": "compacting", "tokens": tokens })
        }
        Event::Compacted { summary, messages, tokens_before, tokens_after, usage, .. } => json!({
            "type": "compacted", "summary": summary, "messages": messages,
            "before": tokens_before, "after": tokens_after, "usage": self::usage(*usage),
        }),
        Event::CompactionFailed { reason } => {
            json!({ "type": "compaction_failed", "reason": reason })
        }
        Event::MemorySaved { upto: _, path } => json!({ "type": "memory_saved", "path": path }),
        Event::MemoryNotSaved { upto: _, reason } => {
            json!({ "type": "memory_not_saved", "reason": reason })
        }
        Event::SessionClosed { reason, summary } => {
            json!({ "type": "closed", "reason": reason, "summary": summary })
        }
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "input": usage.input, "output": usage.output, "cached": usage.cached,
        "thought": usage.reasoning, "total": usage.total(), "estimated": usage.estimated,
    })
}

pub(super) fn assessment(assessment: &Assessment) -> Value {
    json!({
        "risk": assessment.risk.name(), "reasons": assessment.reasons,
        "reversible": assessment.reversible, "preview": assessment.preview,
        "similar": assessment.subject.similar,
    })
}

fn answer_name(answer: ApprovalDecision) -> &'static str {
    match answer {
        ApprovalDecision::Allow => "approve",
        ApprovalDecision::Deny => "deny",
    }
}

fn role_name(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn parts(parts: &[Part]) -> Vec<Value> {
    let part = |part: &Part| match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Context(text) => json!({ "type": "context", "text": text }),
        Part::Thought(text) => json!({ "type": "thought", "text": text }),
        Part::Media { kind, name, mime } => {
            json!({ "type": kind.name(), "name": name, "mime": mime })
        }
        Part::Call { call, tool, input } => {
            json!({ "type": "call", "call": call.as_str(), "tool": tool, "input": input })
        }
    };
    parts.iter().map(part).collect()
}

fn outcome(outcome: &Outcome) -> Value {
    let text = quintet_kernel::message::text_of(&outcome.parts);
    let shown = &text[..text.floor_char_boundary(OUTPUT_LIMIT)];
    let artifact =
        |file: &CallArtifact| json!({ "name": file.name, "mime": file.mime, "size": file.size });
    json!({
        "ending": match outcome.ending {
            Ending::Succeeded => "succeeded",
            Ending::Idle => "idle",
            Ending::Failed => "failed",
            Ending::Denied => "denied",
            Ending::Skipped => "skipped",
            Ending::Cancelled => "cancelled",
            Ending::Interrupted => "interrupted",
            Ending::TimedOut => "timed_out",
        },
        "text": shown, "left_out": text.len() - shown.len(), "error": outcome.error,
        "files": outcome.changes.iter().map(|change| &*change.path).collect::<Vec<_>>(),
        "artifacts": outcome.artifacts.iter().map(artifact).collect::<Vec<_>>(),
    })
}

fn by_name(by: DecidedBy) -> &'static str {
    match by {
        DecidedBy::Client => "client",
        DecidedBy::Clock => "clock",
        DecidedBy::Memory => "memory",
    }
}

fn news(news: &SubagentUpdate) -> Value {
    match news {
        SubagentUpdate::Spawned { task, model, delegation: _ } => json!({
            "type": "spawned", "task": task, "model": model.as_ref().map(ToString::to_string),
        }),
        SubagentUpdate::Progressed { steps, status } => {
            json!({ "type": "progressed", "steps": steps, "status": status })
        }
        SubagentUpdate::Asked { call, tool, input, assessment, expires } => json!({
            "type": "asked", "question": call.as_str(), "tool": tool, "input": input,
            "assessment": self::assessment(assessment), "expires": expires.map(Time::micros),
        }),
        SubagentUpdate::Settled { call, answer } => json!({
            "type": "settled", "question": call.as_str(), "answer": answer.map(answer_name),
        }),
        SubagentUpdate::Completed { result, ok, usage } => json!({
            "type": "completed", "result": result, "ok": ok, "usage": self::usage(*usage),
        }),
    }
}
