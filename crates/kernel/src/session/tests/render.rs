//! Events and effects as one line of text each.

use serde_json::json;

use crate::event::{ClientCallInfo, Event, RequestedCall, StopCause};
use crate::message::{Part, text_of};
use crate::question::QuestionAnswer;
use crate::session::{Effect, next};
use crate::time::Time;
use crate::tool::Risk;

use super::Session;
use super::script::MIDNIGHT;

impl Session {
    pub(super) fn effects(&mut self) -> Vec<String> {
        let effects = next(&self.state);
        let effect = |effect| match effect {
            Effect::CallModel(step) => format!("model {}", self.short(&step)),
            Effect::GatherContext(turn) => format!("survey {}", self.short(&turn)),
            Effect::AssessCall(call) => format!("assess {}", self.short(&call)),
            Effect::ReviewCall(call) => format!("review {}", self.short(&call)),
            Effect::RevertTurn(turn) => format!("revert {}", self.short(&turn)),
            Effect::RunCall(call) => format!("run {}", self.short(&call)),
            Effect::Summarize(upto) => format!("summarize {}", self.short(&upto)),
            Effect::SaveMemory(upto) => format!("save {}", self.short(&upto)),
            Effect::CancelSubagent(session) => format!("cancel {session}"),
            Effect::WakeAt(time) => format!("wake {}", clock(time)),
        };
        effects.into_iter().map(effect).collect()
    }

    pub(super) fn event(&mut self, event: &Event) -> String {
        match event {
            Event::SessionCreated(origin) => format!("created in {}", origin.workspace.display()),
            Event::Forked { parent, at } => format!("forked from {parent} at {at}"),
            Event::Labelled { key, value: Some(value) } => format!("label {key}={value}"),
            Event::Labelled { key, value: None } => format!("label {key} removed"),
            Event::ModelSwitched { model } => format!("model {model}"),
            Event::Instructed { system_prompt } => format!("instructed: {system_prompt:?}"),
            Event::Moved { workspace } => format!("moved to {}", workspace.display()),
            Event::Forgotten { upto } => format!("forgotten up to {}", self.short(upto)),
            Event::Superseded { from } => format!("replaced from {} on", self.short(from)),
            Event::ToolsChosen(toolset) => {
                let names = toolset.client.iter().map(|tool| tool.name.as_str());
                format!("tools of the client: {}", names.collect::<Vec<_>>().join(" "))
            }
            Event::AttachmentAdded(file) => format!("attached {:?} {}", file.name, file.mime),
            Event::SessionClosed { reason, .. } => format!("closed{}", why(reason.as_deref())),
            Event::MessageAdded { message, turn, role, parts, .. } => {
                self.short(message);
                format!("{} {role:?}: {}", self.short(turn), parts_text(parts))
            }
            Event::VerificationRequested { call, .. } => format!("verify {}", self.call(call)),
            Event::ContextGathered { sections, tokens, .. } => {
                let titles: Vec<_> = sections.iter().map(|section| &*section.title).collect();
                format!("context [{}], {tokens} tokens", titles.join(" "))
            }
            Event::RevertRequested { turn } => format!("{} is to be undone", self.short(turn)),
            Event::Reverted { turn, files, more, reapplied } => {
                let what = if *reapplied { "made again" } else { "undone" };
                let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
                format!("{} {what}: {}{more}", self.short(turn), files.join(" "))
            }
            Event::RevertFailed { turn, reason } => {
                format!("{} not undone: {reason}", self.short(turn))
            }
            Event::CompactionRequested { upto, tokens, .. } => {
                format!("compacting up to {}, {tokens} tokens", self.short(upto))
            }
            Event::Compacted { upto, summary, messages, facts, .. } => {
                let facts: String = facts.iter().map(|fact| format!(" +{fact}")).collect();
                let summary = summary.replace('\n', "/");
                format!("compacted {messages} up to {}: {summary}{facts}", self.short(upto))
            }
            Event::Subagent { call, session, news, .. } => {
                format!("{} has {session}: {news:?}", self.short(call))
            }
            Event::MemorySaved { upto, path } => format!("{} saved to {path}", self.short(upto)),
            Event::MemoryNotSaved { upto, reason } => {
                format!("{} not saved: {reason}", self.short(upto))
            }
            Event::CompactionFailed { reason } => format!("not compacted: {reason}"),
            Event::StepStarted { .. }
            | Event::TextAppended { .. }
            | Event::ModelRetrying { .. }
            | Event::ModelCompleted { .. }
            | Event::StepInterrupted { .. } => self.of_step_event(event),
            Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::CallStarted { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::ClaimReleased { .. }
            | Event::CallCompleted { .. } => self.of_call_event(event),
            Event::TurnStarted { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::TurnHeld { .. }
            | Event::TurnReleased { .. }
            | Event::TurnCompleted { .. }
            | Event::TurnFailed { .. }
            | Event::TurnCancelled { .. } => self.of_turn_event(event),
        }
    }

    fn of_step_event(&mut self, event: &Event) -> String {
        match event {
            Event::StepStarted { step, model, .. } => format!("{} asks {model}", self.short(step)),
            Event::TextAppended { step, offset, channel, text, .. } => {
                format!("{} {channel:?}@{offset} {text:?}", self.short(step))
            }
            Event::ModelRetrying { step, attempt, reason, .. } => {
                format!("{} retries #{attempt}: {reason}", self.short(step))
            }
            Event::ModelCompleted { step, message, calls, .. } => {
                message.iter().for_each(|id| drop(self.short(id)));
                let calls: String = calls.iter().map(|c| format!(" {}", self.call(c))).collect();
                format!("{} answered{calls}", self.short(step))
            }
            Event::StepInterrupted { step, message, reason, .. } => {
                message.iter().for_each(|id| drop(self.short(id)));
                format!("{} cut: {reason}", self.short(step))
            }
            _ => unreachable!("sorted by `event`"),
        }
    }

    fn of_call_event(&mut self, event: &Event) -> String {
        match event {
            Event::ReviewRequested { call, .. } => format!("{} in review", self.short(call)),
            Event::Reviewed { call, answer, comment, .. } => {
                format!("{} reviewed, {answer:?}: {comment}", self.short(call))
            }
            Event::ApprovalRequested { call, expires, .. } => {
                let until = expires.map(|time| format!(" until {}", clock(time)));
                format!("{} asked{}", self.short(call), until.unwrap_or_default())
            }
            Event::ApprovalAnswered { call, answer, reason, by, .. } => {
                let why = why(reason.as_deref());
                format!("{} {answer:?} by {by:?}{why}", self.short(call))
            }
            Event::CallStarted { call, placement, errand, .. } => {
                let errand = errand.as_ref().map(client_call_text);
                format!(
                    "{} starts at {placement:?}{}",
                    self.short(call),
                    errand.unwrap_or_default()
                )
            }
            Event::QuestionAsked { call, id, question, expires, .. } => {
                let until = expires.map(|time| format!(" until {}", clock(time)));
                let (call, id) = (self.short(call), self.short(id));
                format!("{call} asks {id} {:?}{}", question.message, until.unwrap_or_default())
            }
            Event::QuestionAnswered { id, answer, reason, by, .. } => {
                let answer = match answer {
                    QuestionAnswer::Accepted { content } => json!(content).to_string(),
                    QuestionAnswer::Declined => "declined".into(),
                    QuestionAnswer::Cancelled => "cancelled".into(),
                };
                let by = by.map(|by| format!(" by {by:?}")).unwrap_or_default();
                format!("{} {answer}{by}{}", self.short(id), why(reason.as_deref()))
            }
            Event::CallClaimed { call, by, .. } => {
                format!("{} claimed by {}", self.short(call), by.name)
            }
            Event::ClaimHolderLost { call, by, until, .. } => {
                format!("{} waits for {} until {}", self.short(call), by.name, clock(*until))
            }
            Event::ClaimReleased { call, .. } => format!("{} free again", self.short(call)),
            Event::CallCompleted { call, message, outcome, .. } => {
                self.short(message);
                format!("{} {:?}: {}", self.short(call), outcome.ending, text_of(&outcome.parts))
            }
            _ => unreachable!("sorted by `event`"),
        }
    }

    fn of_turn_event(&mut self, event: &Event) -> String {
        match event {
            Event::TurnStarted { turn, attempt, .. } => {
                format!("{} starts, attempt {attempt}", self.short(turn))
            }
            Event::StopRequested { turn, cause: StopCause::Cancelled { reason } } => {
                format!("{} stops: cancelled{}", self.short(turn), why(reason.as_deref()))
            }
            Event::StopRequested { turn, cause: StopCause::Failed { code, message } } => {
                format!("{} stops: {}: {message}", self.short(turn), code.name())
            }
            Event::TurnResumed { turn, .. } => format!("{} resumed", self.short(turn)),
            Event::TurnHeld { turn, .. } => format!("{} held", self.short(turn)),
            Event::TurnReleased { turn } => format!("{} released", self.short(turn)),
            Event::TurnCompleted { turn, verified, .. } => {
                let verified = verified.map(|v| if v { ", verified" } else { ", not verified" });
                format!("{} COMPLETED{}", self.short(turn), verified.unwrap_or_default())
            }
            Event::TurnFailed { turn, code, message, .. } => {
                format!("{} FAILED {}: {message}", self.short(turn), code.name())
            }
            Event::TurnCancelled { turn, reason, .. } => {
                format!("{} CANCELLED{}", self.short(turn), why(reason.as_deref()))
            }
            _ => unreachable!("sorted by `event`"),
        }
    }

    fn call(&mut self, call: &RequestedCall) -> String {
        let malformed = if call.malformed.is_some() { "!" } else { "" };
        format!("{}={}{malformed}{}", self.short(&call.id), call.tool, call.input)
    }

    /// The short name of an id; assigned at its first use.
    pub(crate) fn short(&mut self, id: &impl ToString) -> String {
        let id = id.to_string();
        if let Some(name) = self.names.get(&id) {
            return name.clone();
        }
        let kinds =
            [("turn_", "t"), ("step_", "s"), ("msg_", "m"), ("call_", "k"), ("question_", "q")];
        let Some((_, letter)) = kinds.into_iter().find(|(prefix, _)| id.starts_with(prefix)) else {
            return id;
        };
        let of_kind = |name: &&String| name.starts_with(letter);
        let name = format!("{letter}{}", self.names.values().filter(of_kind).count() + 1);
        self.names.insert(id, name.clone());
        name
    }
}

fn parts_text(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => format!("{text:?}"),
        Part::Media { kind, name, .. } => format!("{}:{name}", kind.name()),
        Part::Context(_) | Part::Thought(_) | Part::Call { .. } => "?".into(),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(" ")
}

fn why(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn clock(time: Time) -> String {
    match time.micros() {
        i64::MAX => "never".into(),
        _ => format!("+{}", time.since(MIDNIGHT).as_secs()),
    }
}

/// The parts of a client call's details that differ from the default.
fn client_call_text(info: &ClientCallInfo) -> String {
    let risk = match info.risk {
        Risk::Medium => String::new(),
        other => format!(", {other:?}"),
    };
    let reason = info.reason.as_ref().map(|reason| format!(", {reason:?}"));
    let until = info.expires.map(|time| format!(" until {}", clock(time)));
    format!("{}{risk}{}", until.unwrap_or_default(), reason.unwrap_or_default())
}
