//! Encodes events of the core as events of the protocol.
//!
//! A stream reads a turn from its start, even if its client has seen part of it: that part is read without
//! output, so that the final text is complete and it is known which calls the client still has to run.

use std::collections::HashSet;

use quintet_kernel::event::{ClientCallInfo, Event, Record, Seq};
use quintet_kernel::follow::unseen_text;
use quintet_kernel::message::text_of;
use quintet_kernel::model::Channel;
use quintet_kernel::tool::{Ending, Outcome, Placement, Risk};
use quintet_kernel::{CallId, Cursor, Item, TurnId};
use serde::Serialize;
use serde_json::{Value, json};

use super::tools::{FRONT_END, wire_risk};
use super::wire;

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Link {
    /// The turn that is streamed, and which attempt of it; `None` for all turns.
    only: Option<(TurnId, u32)>,
    /// The position up to which the client has everything.
    seen: Cursor,
    /// The last event that was read.
    read: Seq,
    /// The last event that the client has proved to have. It may continue calls that started up to there.
    shown: Seq,
    /// Calls that a client has to run.
    delegated: Vec<DelegatedCall>,
    /// Calls that this stream has claimed; only these are sent to its client.
    claimed: HashSet<CallId>,
    /// The text of the current step.
    answer: String,
    /// The attempt of the open turn; `None` if no turn is open.
    open: Option<u32>,
    end: Option<End>,
}

#[derive(Debug)]
struct DelegatedCall {
    call: CallId,
    request: Vec<u8>,
    sent: bool,
    /// True if the client has proved that it was connected when the call started.
    came_back: bool,
}

/// A call that a stream may claim.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claimable {
    pub(super) call: CallId,
    /// True if the client may hold the call on a lost connection.
    pub(super) came_back: bool,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The turn completed with this text.
    Final(String),
    /// The turn failed, with this code and message.
    Error(String, String),
}

/// One encoded event of the protocol.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) position: Cursor,
    pub(super) event: &'static str,
    pub(super) data: Vec<u8>,
}

impl Link {
    /// A stream of a whole session. The client is sent what comes after `seen`, and has proved to have the
    /// events up to `shown`; 0 if it has proved nothing.
    pub(super) fn of_session(seen: Cursor, read: Seq, shown: Seq) -> Self {
        Self {
            only: None,
            seen,
            read,
            shown,
            delegated: Vec::new(),
            claimed: HashSet::new(),
            answer: String::new(),
            open: None,
            end: None,
        }
    }

    /// A stream of one turn, which ends with this attempt.
    pub(super) fn of_turn(turn: (TurnId, u32), seen: Cursor, read: Seq, shown: Seq) -> Self {
        Self { only: Some(turn), ..Self::of_session(seen, read, shown) }
    }

    /// The event up to which there is nothing new for the client.
    pub(super) fn seen_seq(&self) -> Seq {
        self.seen.seq
    }

    /// True if a turn is open at the last event that was read.
    pub(super) fn in_turn(&self) -> bool {
        self.open.is_some()
    }

    /// The end of the turn, after it ended.
    pub(super) fn end(&self) -> Option<&End> {
        self.end.as_ref().filter(|_| self.only.is_some())
    }

    /// The calls that the stream has to claim before it encodes these items.
    pub(super) fn claimable(&self, items: &[Item]) -> Vec<Claimable> {
        let claimable = |item: &Item| match item {
            Item::Event(record) => self.claimable_call(record),
            Item::Text { .. } | Item::Progress { .. } => None,
        };
        items.iter().filter_map(claimable).collect()
    }

    fn claimable_call(&self, record: &Record) -> Option<Claimable> {
        match &record.event {
            Event::CallStarted { turn, call, placement: Placement::Client, errand, .. }
                if self.includes(turn) && is_ours(errand.as_ref()) =>
            {
                Some(Claimable { call: call.clone(), came_back: record.seq <= self.shown })
            }
            Event::ClaimReleased { turn, call, .. } if self.includes(turn) => {
                let known = self.delegated.iter().find(|known| known.call == *call)?;
                Some(Claimable { call: known.call.clone(), came_back: false })
            }
            Event::ClaimHolderLost { call, .. } => {
                let mine = |known: &&DelegatedCall| known.call == *call && known.came_back;
                let known = self.delegated.iter().find(mine)?;
                Some(Claimable { call: known.call.clone(), came_back: true })
            }
            _ => None,
        }
    }

    /// True if the stream includes a turn.
    fn includes(&self, turn: &TurnId) -> bool {
        self.only.as_ref().is_none_or(|(only, _)| only == turn)
    }

    /// Calls from before the stream started that were not sent on it.
    pub(super) fn unsent(&self) -> Vec<Claimable> {
        let unsent = self.delegated.iter().filter(|delegated| !delegated.sent);
        let claimable = |known: &DelegatedCall| Claimable {
            call: known.call.clone(),
            came_back: known.came_back,
        };
        unsent.map(claimable).collect()
    }

    /// Records that the stream claimed a call, so that its client is sent it.
    pub(super) fn claimed(&mut self, call: CallId) {
        self.claimed.insert(call);
    }

    /// Sends the claimed calls from before the stream started.
    pub(super) fn start(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        for Claimable { call, .. } in self.unsent() {
            self.send_call(&call, &mut frames);
        }
        frames
    }

    /// Encodes an item.
    pub(super) fn encode(&mut self, item: &Item) -> Vec<Frame> {
        let mut frames = Vec::new();
        match item {
            Item::Event(record) => self.event(record, &mut frames),
            Item::Text { position, seq, channel, text, .. } => {
                self.read = self.read.max(*seq);
                let new = self.unseen(Cursor { seq: *seq, ..*position }, text);
                if *channel == Channel::Text {
                    self.answer.push_str(text);
                    let data = json(&wire::Text { text: new });
                    let frame = Frame { position: *position, event: "assistant.delta", data };
                    frames.extend((!new.is_empty()).then_some(frame));
                }
            }
            Item::Progress { .. } => {}
        }
        frames
    }

    fn event(&mut self, record: &Record, frames: &mut Vec<Frame>) {
        self.read = record.seq;
        let is_new = record.seq > self.seen.seq;
        let before = self.seen;
        if is_new {
            self.seen.seq = record.seq;
        }
        match &record.event {
            Event::TurnStarted { attempt, .. } => {
                self.open = Some(*attempt);
                self.answer.clear();
            }
            Event::StepStarted { .. } => {
                self.answer.clear();
                self.seen.offset = if is_new { 0 } else { self.seen.offset };
            }
            Event::CallStarted {
                call, tool, input, placement: Placement::Client, errand, ..
            } if is_ours(errand.as_ref()) => {
                let request = request(call, tool, input, errand.as_ref());
                self.delegate(call, &request, is_new, frames);
            }
            Event::ClaimReleased { call, .. } | Event::ClaimHolderLost { call, .. } if is_new => {
                self.send_call(call, frames);
            }
            Event::CallCompleted { call, outcome, .. } => {
                let known = self.delegated.iter().position(|delegated| delegated.call == *call);
                if let Some(n) = known {
                    self.delegated.remove(n);
                    self.returned(call, outcome, is_new.then_some(before), frames);
                }
            }
            Event::TurnCompleted { turn, .. } => {
                let text = std::mem::take(&mut self.answer);
                self.push_frame(frames, is_new, "assistant.final", &wire::Text { text: &text });
                self.ended(turn, End::Final(text));
            }
            Event::TurnFailed { turn, code, message, .. } => {
                let code = code.name().to_uppercase();
                self.failed(turn, (code, message.clone()), is_new, frames);
            }
            Event::TurnCancelled { turn, reason, .. } => {
                let why = reason.as_ref().filter(|why| !why.is_empty());
                let why =
                    why.map_or("the turn was canceled".into(), |why| format!("canceled: {why}"));
                self.failed(turn, ("CANCELLED".into(), why), is_new, frames);
            }
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Labelled { .. }
            | Event::ModelSwitched { .. }
            | Event::AttachmentAdded(_)
            | Event::MessageAdded { .. }
            | Event::ContextGathered { .. }
            | Event::TextAppended { .. }
            | Event::ModelRetrying { .. }
            | Event::ModelCompleted { .. }
            | Event::StepInterrupted { .. }
            | Event::VerificationRequested { .. }
            | Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::ToolsChosen(_)
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::CallStarted { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::ClaimReleased { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::TurnHeld { .. }
            | Event::TurnReleased { .. }
            | Event::RevertRequested { .. }
            | Event::Reverted { .. }
            | Event::RevertFailed { .. }
            | Event::CompactionRequested { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::Subagent { .. }
            | Event::SessionClosed { .. } => {}
        }
    }

    /// The part of a text that the client does not have; `position` is the end of the text.
    fn unseen<'a>(&mut self, position: Cursor, text: &'a str) -> &'a str {
        if position <= self.seen {
            return "";
        }
        let start = position.offset.saturating_sub(text.len() as u64);
        let new = unseen_text(text, start, self.seen.offset);
        self.seen = Cursor { offset: self.seen.offset.max(position.offset), ..position };
        new
    }

    fn delegate(
        &mut self,
        call: &CallId,
        request: &wire::ToolRequest<'_>,
        is_new: bool,
        frames: &mut Vec<Frame>,
    ) {
        let sent = is_new && self.claimed.contains(call);
        self.push_frame(frames, sent, "tool.request", request);
        let (call, request, came_back) = (call.clone(), json(request), self.read <= self.shown);
        self.delegated.push(DelegatedCall { call, request, sent, came_back });
    }

    fn returned(
        &mut self,
        call: &CallId,
        outcome: &Outcome,
        is_new: Option<Cursor>,
        frames: &mut Vec<Frame>,
    ) {
        let Some(before) = is_new else { return };
        let timeout =
            wire::Error { code: "TOOL_TIMEOUT", message: &text_of(&outcome.parts), details: None };
        let timed_out = outcome.ending == Ending::TimedOut;
        let result = result(call, outcome, timed_out.then(|| json!(timeout)));
        self.push_frame(frames, true, "tool.result", &result);
        if timed_out {
            // A client that disconnects between these two events gets both again.
            frames.iter_mut().last().into_iter().for_each(|frame| frame.position = before);
            self.push_frame(frames, true, "error", &timeout);
        }
    }

    fn failed(
        &mut self,
        turn: &TurnId,
        error: (String, String),
        is_new: bool,
        frames: &mut Vec<Frame>,
    ) {
        let (code, message) = error;
        let error = wire::Error { code: &code, message: &message, details: None };
        self.push_frame(frames, is_new, "error", &error);
        self.ended(turn, End::Error(code, message));
    }

    fn ended(&mut self, turn: &TurnId, end: End) {
        let attempt = self.open.take();
        let (all, last) = match &self.only {
            None => (true, true),
            Some((only, wanted)) => {
                (only == turn, attempt.is_none_or(|attempt| attempt >= *wanted))
            }
        };
        if all && last {
            self.end = Some(end);
        }
    }

    /// Sends a claimed call to the client.
    fn send_call(&mut self, call: &CallId, frames: &mut Vec<Frame>) {
        let position = self.seen;
        let mine = self.claimed.contains(call);
        let delegated = self.delegated.iter_mut().filter(|delegated| delegated.call == *call);
        for delegated in delegated.filter(|delegated| mine && !delegated.sent) {
            delegated.sent = true;
            let data = delegated.request.clone();
            frames.push(Frame { position, event: "tool.request", data });
        }
    }

    fn push_frame(
        &self,
        frames: &mut Vec<Frame>,
        is_new: bool,
        event: &'static str,
        data: &impl Serialize,
    ) {
        if is_new {
            // Only text has byte offsets; all other events come after it.
            let position = Cursor::after(self.seen.seq);
            frames.push(Frame { position, event, data: json(data) });
        }
    }
}

/// True if desktops run a call, not the clients of another front end.
fn is_ours(errand: Option<&ClientCallInfo>) -> bool {
    let front_end = errand.and_then(|errand| errand.front_end.as_deref());
    front_end.is_none_or(|front_end| front_end == FRONT_END)
}

fn request<'a>(
    call: &'a CallId,
    tool: &'a str,
    input: &Value,
    errand: Option<&ClientCallInfo>,
) -> wire::ToolRequest<'a> {
    let reason = errand.and_then(|errand| errand.reason.clone());
    let arguments = match input {
        Value::Object(_) => input.clone(),
        // The protocol has only named arguments.
        other => json!({ "input": other }),
    };
    wire::ToolRequest {
        id: call.as_str(),
        name: tool,
        arguments,
        risk: wire_risk(errand.map_or(Risk::Medium, |errand| errand.risk)),
        reason: reason.unwrap_or_else(|| format!("The assistant asks for {tool}.")),
    }
}

fn result<'a>(
    call: &'a CallId,
    outcome: &Outcome,
    timeout: Option<Value>,
) -> wire::ToolOutcome<'a> {
    let (result, error) = if outcome.ok() {
        (Some(text_of(&outcome.parts)), Value::Null)
    } else {
        (None, timeout.unwrap_or_else(|| json!(outcome.error)))
    };
    wire::ToolOutcome { id: call.as_str(), ok: outcome.ok(), result, error }
}

fn json(data: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(data).expect("our own types have string keys")
}
