//! Converts the events of a turn into the progress of one request's answer.
//!
//! A turn whose caller runs tools is answered in parts: each request gets the events from its first one until
//! the turn ends or waits for the caller. The result depends only on the journal, so the same answer can be
//! read again at any time.

use std::collections::HashSet;

use quintet_kernel::event::{Event, FailureCode, Record, RequestedCall, Seq};
use quintet_kernel::model::{FinishReason, Usage};
use quintet_kernel::tool::Placement;
use quintet_kernel::{CallId, Item, SessionId, TurnId};

use crate::openai::decode::conversation::FRONT_END;
use crate::openai::encode::{End, Ended, Progress, ToolCall};
use crate::openai::reply::Reply;
use crate::openai::response_id::CallerCall;

/// The note that a turn keeps of the tools that its caller runs.
pub(crate) const CLIENT_TOOLS: &str = "client_tools";

/// Reads a turn, from its first event on.
#[derive(Debug)]
pub(crate) struct TurnReader {
    session: SessionId,
    turn: TurnId,
    /// The event that the answer begins with.
    begins: Seq,
    /// The tools that the caller runs.
    client_tools: HashSet<String>,
    /// The calls of the current step that are not over.
    calls: Vec<OpenCall>,
    /// True once a model has answered or begun to.
    has_output: bool,
    finish: FinishReason,
    usage: Usage,
    /// The event that the answer ended with.
    ended: Option<Seq>,
}

#[derive(Debug)]
struct OpenCall {
    request: RequestedCall,
    /// True if the call waits for the caller.
    is_waiting: bool,
}

impl TurnReader {
    /// A reader of the part of a turn that begins with an event.
    pub(crate) fn new(session: SessionId, turn: TurnId, begins: Seq) -> Self {
        Self {
            session,
            turn,
            begins,
            client_tools: HashSet::new(),
            calls: Vec::new(),
            has_output: false,
            finish: FinishReason::Stop,
            usage: Usage::default(),
            ended: None,
        }
    }

    /// True once the answer has ended; nothing follows.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The last event of the answer, once it has ended.
    pub(crate) fn ended(&self) -> Option<Seq> {
        self.ended
    }

    /// Takes an item of the session.
    pub(crate) fn take(&mut self, item: &Item) -> Vec<Progress> {
        if self.is_over() {
            return Vec::new();
        }
        match item {
            Item::Text { position, turn, channel, text, .. } => {
                self.has_output |= *turn == self.turn;
                let shown = *turn == self.turn && position.seq >= self.begins;
                shown.then(|| Progress::Output(*channel, text.clone())).into_iter().collect()
            }
            Item::Progress { .. } => Vec::new(),
            Item::Event(record) if record.event.turn() == Some(&self.turn) => {
                let progress = self.event(&record.event);
                if record.seq < self.begins { Vec::new() } else { self.shown(record, progress) }
            }
            Item::Event(_) => Vec::new(),
        }
    }

    /// What the caller is shown of an event.
    fn shown(&mut self, record: &Record, mut progress: Vec<Progress>) -> Vec<Progress> {
        self.usage = self.usage.plus(usage(&record.event));
        let how = match &record.event {
            Event::TurnCompleted { .. } => Some(Ended::Finished(self.last_finish())),
            Event::TurnFailed { code, message, .. } => Some(self.failed(*code, message)),
            Event::TurnCancelled { reason, .. } => Some(Ended::Cancelled(reason.clone())),
            Event::CallStarted { .. } | Event::CallCompleted { .. } if self.waits() => {
                Some(Ended::Finished(FinishReason::ToolCalls))
            }
            _ => None,
        };
        if let Some(how) = how {
            self.ended = Some(record.seq);
            progress.push(Progress::End(End { how, usage: self.usage, at: Some(record.at) }));
        }
        progress
    }

    fn event(&mut self, event: &Event) -> Vec<Progress> {
        match event {
            Event::MessageAdded { options, .. } => {
                let noted = options.front_end_data(FRONT_END).map(|note| &note[CLIENT_TOOLS]);
                let names = noted.and_then(|names| names.as_array()).into_iter().flatten();
                self.client_tools =
                    names.filter_map(|name| name.as_str().map(Into::into)).collect();
            }
            Event::ModelCompleted { finish, calls, .. } => {
                self.has_output = true;
                self.finish = finish.clone();
                let open = |request: &RequestedCall| OpenCall {
                    request: request.clone(),
                    is_waiting: false,
                };
                self.calls = calls.iter().map(open).collect();
                return vec![Progress::StepOver { whole: true }];
            }
            Event::StepInterrupted { .. } => return vec![Progress::StepOver { whole: false }],
            Event::CallStarted { call, placement: Placement::Client, .. } => {
                return self.started(call).into_iter().collect();
            }
            Event::CallCompleted { call, .. } => self.calls.retain(|open| open.request.id != *call),
            _ => {}
        }
        Vec::new()
    }

    fn started(&mut self, call: &CallId) -> Option<Progress> {
        let open = self.calls.iter_mut().find(|open| open.request.id == *call)?;
        open.is_waiting = true;
        let id = CallerCall { session: self.session.clone(), call: call.clone() }.to_string();
        let RequestedCall { tool, input, .. } = &open.request;
        Some(Progress::Call(ToolCall { id, tool: tool.clone(), arguments: input.to_string() }))
    }

    /// True if nothing can go on before the caller has run its calls: those at the front are all with
    /// the caller, and others wait for them.
    fn waits(&self) -> bool {
        let of_caller = |open: &&OpenCall| self.client_tools.contains(&open.request.tool);
        let mut front = self.calls.iter().take_while(of_caller).peekable();
        front.peek().is_some() && front.all(|open| open.is_waiting)
    }

    /// How a turn ended that failed. One that reached a limit gives what there is.
    fn failed(&self, code: FailureCode, message: &str) -> Ended {
        match code {
            FailureCode::StepLimit | FailureCode::TokenLimit | FailureCode::TimeLimit => {
                Ended::Finished(FinishReason::Length)
            }
            FailureCode::Denied => Ended::Finished(FinishReason::Stop),
            FailureCode::Model(_)
            | FailureCode::Loop
            | FailureCode::Unverified
            | FailureCode::Interrupted => {
                let reply = Reply::failed(code, message);
                Ended::Failed(if self.has_output { reply.in_the_middle() } else { reply })
            }
        }
    }

    fn last_finish(&self) -> FinishReason {
        match &self.finish {
            FinishReason::ToolCalls => FinishReason::Stop,
            finish => finish.clone(),
        }
    }
}

/// The tokens that an event counts.
fn usage(event: &Event) -> Usage {
    match event {
        Event::ModelCompleted { usage, .. } | Event::Reviewed { usage, .. } => *usage,
        _ => Usage::default(),
    }
}
