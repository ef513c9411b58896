//! Converts the events of a turn into the progress of one request's answer.
//!
//! A turn whose client runs tools is answered in parts: each request gets the events from its first one
//! until the turn ends or waits for the client. The result depends only on the journal, so the same answer
//! can be read again at any time.

use std::collections::HashSet;

use quintet_kernel::event::{Event, FailureCode, Record, RequestedCall, Seq};
use quintet_kernel::model::{FinishReason, Usage};
use quintet_kernel::tool::Placement;
use quintet_kernel::{CallId, Item, SessionId, TurnId};

use crate::openai::decode::conversation::FRONT_END;
use crate::openai::encode::{End, EndReason, Progress, ToolCall};
use crate::openai::reply::Reply;
use crate::openai::response_id::ClientCallId;

/// The key of the stored list of tools that the client runs.
pub(crate) const CLIENT_TOOLS: &str = "client_tools";

/// Reads a turn, from its first event.
#[derive(Debug)]
pub(crate) struct TurnReader {
    session: SessionId,
    turn: TurnId,
    /// The first event of the answer.
    begins: Seq,
    /// The tools that the client runs.
    client_tools: HashSet<String>,
    /// The calls of the current step that have not ended.
    calls: Vec<OpenCall>,
    /// True after a model has started to answer.
    has_output: bool,
    finish: FinishReason,
    usage: Usage,
    /// The last event of the answer, after it ended.
    ended: Option<Seq>,
}

#[derive(Debug)]
struct OpenCall {
    request: RequestedCall,
    /// True if the call waits for the client.
    is_waiting: bool,
}

impl TurnReader {
    /// A reader for the part of a turn that starts with an event.
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

    /// True after the answer ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// The last event of the answer, after it ended.
    pub(crate) fn ended(&self) -> Option<Seq> {
        self.ended
    }

    /// Converts an item of the session.
    pub(crate) fn take(&mut self, item: &Item) -> Vec<Progress> {
        if self.is_over() {
            return Vec::new();
        }
        match item {
            Item::Text { position, turn, channel, text, .. } => {
                self.has_output |= *turn == self.turn;
                let is_new = *turn == self.turn && position.seq >= self.begins;
                is_new.then(|| Progress::Output(*channel, text.clone())).into_iter().collect()
            }
            Item::Progress { .. } => Vec::new(),
            Item::Event(record) if record.event.turn() == Some(&self.turn) => {
                let progress = self.event(&record.event);
                if record.seq < self.begins { Vec::new() } else { self.with_end(record, progress) }
            }
            Item::Event(_) => Vec::new(),
        }
    }

    /// Adds the end of the answer, if an event ends it.
    fn with_end(&mut self, record: &Record, mut progress: Vec<Progress>) -> Vec<Progress> {
        self.usage = self.usage.plus(usage(&record.event));
        let reason = match &record.event {
            Event::TurnCompleted { .. } => Some(EndReason::Finished(self.last_finish())),
            Event::TurnFailed { code, message, .. } => Some(self.failed(*code, message)),
            Event::TurnCancelled { reason, .. } => Some(EndReason::Cancelled(reason.clone())),
            Event::CallStarted { .. } | Event::CallCompleted { .. } if self.waits() => {
                Some(EndReason::Finished(FinishReason::ToolCalls))
            }
            _ => None,
        };
        if let Some(reason) = reason {
            self.ended = Some(record.seq);
            progress.push(Progress::End(End { reason, usage: self.usage, at: Some(record.at) }));
        }
        progress
    }

    fn event(&mut self, event: &Event) -> Vec<Progress> {
        match event {
            Event::MessageAdded { options, .. } => {
                let stored = options.front_end_data(FRONT_END).map(|data| &data[CLIENT_TOOLS]);
                let names = stored.and_then(|names| names.as_array()).into_iter().flatten();
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
                return vec![Progress::StepEnded { complete: true }];
            }
            Event::StepInterrupted { .. } => return vec![Progress::StepEnded { complete: false }],
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
        let id = ClientCallId { session: self.session.clone(), call: call.clone() }.to_string();
        let RequestedCall { tool, input, .. } = &open.request;
        Some(Progress::Call(ToolCall { id, tool: tool.clone(), arguments: input.to_string() }))
    }

    /// True if the turn waits for the client: the calls at the front are all with the client, and the
    /// others wait for them.
    fn waits(&self) -> bool {
        let of_client = |open: &&OpenCall| self.client_tools.contains(&open.request.tool);
        let mut front = self.calls.iter().take_while(of_client).peekable();
        front.peek().is_some() && front.all(|open| open.is_waiting)
    }

    /// The end of a failed turn. A turn that reached a limit still has an answer.
    fn failed(&self, code: FailureCode, message: &str) -> EndReason {
        match code {
            FailureCode::StepLimit | FailureCode::TokenLimit | FailureCode::TimeLimit => {
                EndReason::Finished(FinishReason::Length)
            }
            FailureCode::Denied => EndReason::Finished(FinishReason::Stop),
            FailureCode::Model(_)
            | FailureCode::Loop
            | FailureCode::Unverified
            | FailureCode::Interrupted => {
                let reply = Reply::failed(code, message);
                EndReason::Failed(if self.has_output { reply.after_output() } else { reply })
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

/// The token usage in an event.
fn usage(event: &Event) -> Usage {
    match event {
        Event::ModelCompleted { usage, .. } | Event::Reviewed { usage, .. } => *usage,
        _ => Usage::default(),
    }
}
