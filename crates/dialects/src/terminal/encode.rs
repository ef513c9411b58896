//! Encodes events of the core as notifications.

use std::collections::{HashMap, HashSet};

use quintet_kernel::event::{
    ApprovalDecision, DecidedBy, Event, FailureCode, Record, SubagentUpdate,
};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::message::text_of;
use quintet_kernel::model::{Channel, FailureKind, Usage};
use quintet_kernel::question::QuestionAnswer;
use quintet_kernel::session::Turn;
use quintet_kernel::{CallId, Item, QuestionId, Seq, State, Time, TurnId};
use serde_json::{Value, json};

use super::blocks::{Block, BlockKind, BlockMeta, is_diff};
use super::calls::{ApprovalRequest, ToolInfo, completed, progress, seconds};
use super::notifications::Notifications;
use super::query::{Part, Query};
use super::screen::{ClientKind, plain_output};
use super::wire;

/// The most output of a tool that a block shows.
const OUTPUT_BYTES_LIMIT: usize = 64 * 1024;

/// Whether the client keeps up with the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientPace {
    Current,
    Behind,
}

/// The state of one connection for one session.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The last event when the client attached.
    head: Seq,
    /// Turns that had ended by then.
    past: HashSet<TurnId>,
    /// The attempt of the open turn at that time; earlier attempts are past.
    attempt: Option<(TurnId, u32)>,
    queries: HashMap<TurnId, Query>,
    /// Open turns of this client.
    own: HashSet<TurnId>,
    tools: HashMap<String, ToolInfo>,
    /// Calls that wait for approval.
    pending_approvals: HashSet<CallId>,
    client_kind: ClientKind,
    /// Questions of other clients' turns, held until this client waits for an answer.
    held_questions: Vec<(CallId, Vec<String>)>,
    /// True if an answer of another client was sent that the original client reads only with its next
    /// answer.
    unread: bool,
}

impl Link {
    /// A client that attaches to a session and has this many bytes of the open turn's answer.
    pub(super) fn new(state: &State, received: u64, client_kind: ClientKind) -> Self {
        let mut link = Self { head: state.head, client_kind, ..Self::default() };
        let turn_ended = |turn: &&Turn| turn.completed.is_some();
        link.past = state.turns.iter().filter(turn_ended).map(|turn| turn.id.clone()).collect();
        for tool in &state.rules().tools {
            let (kind, text) = (tool.kind, first_sentence(&tool.description));
            link.tools.insert(tool.name.clone(), ToolInfo { kind, text });
        }
        if let Some(open) = &state.open {
            link.past.insert(open.id.clone());
            link.attempt = Some((open.id.clone(), open.attempt));
            link.queries.insert(open.id.clone(), Query::new(&open.id, true, received, client_kind));
        }
        link
    }

    /// Tracks a query of this client.
    pub(super) fn track_query(&mut self, turn: &TurnId, streams: bool) {
        self.own.insert(turn.clone());
        let mut query = Query::new(turn, streams, 0, self.client_kind);
        if std::mem::take(&mut self.unread) {
            query.follow_other();
        }
        self.queries.insert(turn.clone(), query);
    }

    /// The number of open turns of this client.
    pub(super) fn open_queries_count(&self) -> usize {
        self.own.len()
    }

    /// True if a turn is known here.
    pub(super) fn knows(&self, turn: &TurnId) -> bool {
        self.queries.contains_key(turn)
    }

    pub(super) fn awaits_approval(&self, call: &CallId) -> bool {
        self.pending_approvals.contains(call)
    }

    /// Encodes items.
    pub(super) fn encode(&mut self, items: &[Item], pace: ClientPace) -> Vec<String> {
        let mut out = Notifications::new(pace);
        if !self.own.is_empty() {
            self.held_questions.drain(..).for_each(|(_, question)| out.append(question));
        }
        for item in items {
            self.item(item, &mut out);
        }
        out.flush();
        out.messages
    }

    fn item(&mut self, item: &Item, out: &mut Notifications) {
        match item {
            Item::Event(record) => {
                let Some(turn) = record.event.turn() else { return };
                if let Event::TurnStarted { attempt, .. } = &record.event {
                    self.attempt_started(turn, *attempt);
                }
                if self.is_past(turn, record.seq) {
                    return;
                }
                if self.is_hidden(turn) {
                    self.forward_questions(&turn.clone(), record, out)
                } else {
                    self.event(&turn.clone(), record, out)
                }
            }
            Item::Text { seq, turn, channel, text, .. } => {
                if !self.is_past(turn, *seq) && !self.is_hidden(turn) {
                    self.text(turn, *channel, text, out);
                }
            }
            // Progress is sent only live.
            Item::Progress { turn, call, text, .. } if !self.is_hidden(turn) => {
                out.send("tool.progress", progress(turn, call, "running", text));
            }
            Item::Progress { .. } => {}
        }
    }

    /// The attempt that was open when the client attached is sent again.
    fn attempt_started(&mut self, turn: &TurnId, attempt: u32) {
        if self.attempt.as_ref().is_some_and(|open| (&open.0, open.1) == (turn, attempt)) {
            self.attempt = None;
            self.past.remove(turn);
        }
    }

    fn is_past(&self, turn: &TurnId, seq: Seq) -> bool {
        seq <= self.head && self.past.contains(turn)
    }

    /// True if the original client would mistake a turn for its own.
    fn is_hidden(&self, turn: &TurnId) -> bool {
        self.client_kind == ClientKind::Original && !self.queries.contains_key(turn)
    }

    /// The original client is sent only the questions of another client's turn, while its own query waits
    /// behind them; it would read everything else as part of its next answer.
    fn forward_questions(&mut self, turn: &TurnId, record: &Record, out: &mut Notifications) {
        match &record.event {
            Event::ApprovalRequested { call, .. } => self.forward(call.clone(), turn, record, out),
            Event::QuestionAsked { id, .. } => {
                self.forward(question_execution(id), turn, record, out)
            }
            Event::ApprovalAnswered { call, .. } | Event::CallCompleted { call, .. } => {
                self.drop_question(call);
            }
            Event::QuestionAnswered { id, .. } => self.drop_question(&question_execution(id)),
            _ => {}
        }
    }

    fn forward(
        &mut self,
        question_id: CallId,
        turn: &TurnId,
        record: &Record,
        out: &mut Notifications,
    ) {
        let mut question = Notifications::new(ClientPace::Current);
        self.call(turn, record, &mut question);
        self.queries.remove(turn);
        if self.own.is_empty() {
            self.held_questions.push((question_id, question.messages))
        } else {
            out.append(question.messages)
        }
    }

    fn drop_question(&mut self, question_id: &CallId) {
        self.pending_approvals.remove(question_id);
        self.held_questions.retain(|(held_questions, _)| held_questions != question_id);
    }

    fn query(&mut self, turn: &TurnId) -> &mut Query {
        let client_kind = self.client_kind;
        self.queries.entry(turn.clone()).or_insert_with(|| Query::new(turn, true, 0, client_kind))
    }

    /// Sends a block that is not part of the model's text.
    fn block(&mut self, of: (&TurnId, &str), block: &Block, about: Value, out: &mut Notifications) {
        let (turn, id) = of;
        let printed = self.query(turn).printed(block.kind, &block.content);
        out.block((&wire::query_id(turn), id), block, &printed, about);
    }

    /// Sends the result of a call; for commands also their plain output.
    fn output(&mut self, turn: &TurnId, record: &Record, out: &mut Notifications) {
        let Event::CallCompleted { call, tool, outcome, .. } = &record.event else { return };
        let text = text_of(&outcome.parts);
        let cut = |text: &str| text[..text.floor_char_boundary(OUTPUT_BYTES_LIMIT)].to_owned();
        let kind = if outcome.ok() { BlockKind::ToolOutput } else { BlockKind::Error };
        let printed = self.query(turn).printed(kind, &cut(&plain_output(&text)));
        let about = json!({
            "execution_id": wire::execution_id(call),
            "tool": tool,
            "truncated": text.len() > OUTPUT_BYTES_LIMIT,
        });
        let (query, id) = (wire::query_id(turn), format!("block-{call}"));
        out.block((&query, &id), &plain(kind, cut(&text)), &printed, about);
    }

    fn text(&mut self, turn: &TurnId, channel: Channel, text: &str, out: &mut Notifications) {
        let query = self.query(turn);
        match channel {
            Channel::Thought => out.send("agent.thinking", thinking(turn, "generating", text)),
            Channel::Text => {
                if query.is_empty {
                    out.send("agent.thinking", thinking(turn, "generating", "Writing the answer"));
                }
                let parts = query.write(text);
                send(parts, query, out);
            }
        }
    }

    fn event(&mut self, turn: &TurnId, record: &Record, out: &mut Notifications) {
        let think = |phase, message: &str| thinking(turn, phase, message);
        match &record.event {
            Event::TurnStarted { .. } => {
                self.query(turn).start(record.at);
                out.send("agent.thinking", think("analyzing", "Reading your request"));
            }
            Event::StepStarted { step, model, .. } => {
                self.query(turn).step(step, model.to_string());
            }
            Event::ModelRetrying { reason, .. } => {
                out.send("agent.thinking", think("analyzing", reason));
            }
            Event::ModelCompleted { calls, by, .. } => {
                let query = self.query(turn);
                let parts = query.end_step();
                send(parts, query, out);
                if let Some(by) = by {
                    query.answered_by(by.to_string());
                }
                if !calls.is_empty() {
                    let names: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
                    let message = format!("Planning to use {}", names.join(", "));
                    out.send("agent.thinking", think("planning", &message));
                }
            }
            Event::StepInterrupted { .. } => {
                let query = self.query(turn);
                let parts = query.end_step();
                send(parts, query, out);
            }
            Event::VerificationRequested { .. } => {
                out.send("agent.thinking", think("executing", "Checking the changes"));
            }
            Event::ReviewRequested { .. } => {
                out.send("agent.thinking", think("planning", "Reading the change again"));
            }
            Event::Subagent { news, .. } => {
                if let Some(message) = subagent_progress(news) {
                    out.send("agent.thinking", think("executing", &message));
                }
            }
            Event::TurnHeld { reason, .. } => {
                let block = plain(BlockKind::Interactive, reason.clone());
                self.block((turn, &format!("block-{turn}-held")), &block, json!({}), out);
            }
            Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::CallStarted { .. }
            | Event::CallCompleted { .. } => self.call(turn, record, out),
            Event::TurnCompleted { usage, .. } => {
                self.turn_ended(turn, "success", (*usage, record.at), out)
            }
            Event::TurnCancelled { usage, .. } => {
                self.turn_ended(turn, "cancelled", (*usage, record.at), out);
            }
            Event::TurnFailed { code, message, usage, .. } => {
                let block = plain(BlockKind::Error, message.clone());
                self.block((turn, &format!("block-{turn}-error")), &block, json!({}), out);
                out.send("stream.error", failed(turn, *code, message));
                self.turn_ended(turn, status(*code), (*usage, record.at), out);
            }
            // Only the ends of these matter to a terminal, or nothing at all.
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Labelled { .. }
            | Event::ModelSwitched { .. }
            | Event::ToolsChosen(_)
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::ClaimReleased { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::AttachmentAdded(_)
            | Event::MessageAdded { .. }
            | Event::ContextGathered { .. }
            | Event::TextAppended { .. }
            | Event::Reviewed { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::TurnReleased { .. }
            | Event::RevertRequested { .. }
            | Event::Reverted { .. }
            | Event::RevertFailed { .. }
            | Event::CompactionRequested { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::SessionClosed { .. } => {}
        }
    }

    fn ask(&mut self, approval: ApprovalRequest<'_>, out: &mut Notifications) {
        let ApprovalRequest { turn, call, tool, assessment, .. } = &approval;
        self.pending_approvals.insert((*call).clone());
        let block = plain(BlockKind::Interactive, assessment.preview.clone());
        let about = json!({ "execution_id": wire::execution_id(call) });
        self.block((turn, &format!("block-{call}-approval")), &block, about, out);
        let request = approval.request(self.tools.get(*tool));
        out.send("tool.request_approval", request);
        self.query(turn).question_sent();
    }

    fn call(&mut self, turn: &TurnId, record: &Record, out: &mut Notifications) {
        match &record.event {
            Event::ApprovalRequested { call, tool, input, assessment, expires, .. } => {
                let timeout = expires.map(|expires| seconds(record.at, expires));
                self.ask(ApprovalRequest { turn, call, tool, input, assessment, timeout }, out);
            }
            Event::QuestionAsked { tool, id, question, expires, .. } => {
                let (call, input) = (&question_execution(id), &question.as_input());
                let assessment = &question.assessment();
                let timeout = expires.map(|expires| seconds(record.at, expires));
                self.ask(ApprovalRequest { turn, call, tool, input, assessment, timeout }, out);
            }
            Event::QuestionAnswered { id, answer, by, .. } => {
                let id = question_execution(id);
                self.pending_approvals.remove(&id);
                let status = match answer {
                    QuestionAnswer::Accepted { .. } => "approved",
                    QuestionAnswer::Declined => "denied",
                    QuestionAnswer::Cancelled => "cancelled",
                };
                let reason = by.map_or("the call has ended", decided_by);
                out.send("tool.progress", progress(turn, &id, status, reason));
            }
            Event::ApprovalAnswered { call, answer, by, .. } => {
                self.pending_approvals.remove(call);
                let status = match answer {
                    ApprovalDecision::Allow => "approved",
                    ApprovalDecision::Deny => "denied",
                };
                out.send("tool.progress", progress(turn, call, status, decided_by(*by)));
            }
            Event::CallStarted { call, tool, .. } => {
                self.query(turn).call_started(call, tool, record.at);
                let message = format!("Running {tool}");
                out.send("agent.thinking", thinking(turn, "executing", &message));
                out.send("tool.progress", progress(turn, call, "started", &message));
            }
            Event::CallCompleted { call, tool, outcome, .. } => {
                self.pending_approvals.remove(call);
                let duration = self.query(turn).call_duration(call, record.at);
                out.send("tool.complete", completed((turn, call), tool, outcome, duration));
                self.output(turn, record, out);
            }
            _ => {}
        }
    }

    fn turn_ended(
        &mut self,
        turn: &TurnId,
        status: &str,
        end: (Usage, Time),
        out: &mut Notifications,
    ) {
        let (usage, at) = end;
        let statistics = self.query(turn).statistics(usage, at);
        let query_id = wire::query_id(turn);
        let complete = json!({ "query_id": query_id, "status": status, "metadata": statistics });
        self.queries.remove(turn);
        if self.own.remove(turn) || self.client_kind == ClientKind::Any {
            return out.send("stream.complete", complete);
        }
        // The original client would take this as the end of its own query.
        self.unread = self.own.is_empty();
        self.queries.values_mut().for_each(Query::follow_other);
    }
}

/// Sends tokens and blocks.
fn send(parts: Vec<Part>, query: &mut Query, out: &mut Notifications) {
    for part in parts {
        match part {
            Part::Token(token) => out.token(&query.id, token),
            Part::Block(id, block, printed) => {
                out.block((&query.id, &id), &block, &printed, json!({}));
            }
        }
    }
}

fn plain(kind: BlockKind, content: String) -> Block {
    let language = (kind == BlockKind::Interactive && is_diff(&content)).then(|| "diff".to_owned());
    Block { kind, language, content, meta: BlockMeta::default() }
}

fn thinking(turn: &TurnId, phase: &str, message: &str) -> Value {
    json!({ "query_id": wire::query_id(turn), "phase": phase, "message": message })
}

fn first_sentence(text: &str) -> String {
    text.split_inclusive(". ").next().unwrap_or_default().trim().to_owned()
}

fn failed(turn: &TurnId, code: FailureCode, message: &str) -> Value {
    let (number, title) = match code {
        FailureCode::Model(FailureKind::Stalled) | FailureCode::TimeLimit => {
            (wire::TIMEOUT, "Operation timed out")
        }
        FailureCode::Model(_) => (wire::MODEL_ERROR, "LLM inference failed"),
        FailureCode::Denied => (wire::PERMISSION_DENIED, "Operation not permitted"),
        FailureCode::Loop | FailureCode::Unverified => (wire::TOOL_ERROR, "Tool execution failed"),
        FailureCode::StepLimit | FailureCode::TokenLimit | FailureCode::Interrupted => {
            (wire::AGENT_ERROR, "Agent processing failed")
        }
    };
    json!({
        "query_id": wire::query_id(turn),
        "error": { "code": number, "message": title, "details": message, "reason": code.name() },
    })
}

/// The execution id of a running call's question.
fn question_execution(question: &QuestionId) -> CallId {
    CallId::named(question.to_string())
}

fn decided_by(by: DecidedBy) -> &'static str {
    match by {
        DecidedBy::Client => "answered by the user",
        DecidedBy::Clock => "nobody answered in time",
        DecidedBy::Memory => "answered earlier for similar calls",
    }
}

fn status(code: FailureCode) -> &'static str {
    match code {
        FailureCode::Model(FailureKind::Stalled) | FailureCode::TimeLimit => "timeout",
        _ => "error",
    }
}

/// The progress of a subagent; its end is shown as the end of a call.
fn subagent_progress(news: &SubagentUpdate) -> Option<String> {
    match news {
        SubagentUpdate::Spawned { task, .. } => Some(format!("Subagent started: {task}")),
        SubagentUpdate::Progressed { status, .. } => Some(format!("Subagent: {status}")),
        SubagentUpdate::Asked { tool, .. } => Some(format!("A subagent needs approval for {tool}")),
        SubagentUpdate::Settled { .. } | SubagentUpdate::Completed { .. } => None,
    }
}
