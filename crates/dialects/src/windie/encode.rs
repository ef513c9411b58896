//! Encodes events of the core as messages to a client of one conversation.
//!
//! The messages of a turn are numbered from its first one on, and only by what is in the journal: a replay
//! gives the same messages the same numbers.

mod compaction;
pub(crate) mod errors;
pub(crate) mod history;
pub(crate) mod prompt_disclosure;
mod tokens;
mod tool_dispatch;
mod traces;
pub(crate) mod turn_frames;

use std::collections::HashSet;

use quintet_kernel::event::{Event, Record, RequestedCall, Seq, TurnOptions};
use quintet_kernel::message::{Role, text_of};
use quintet_kernel::model::{Channel, Prompt, TokenCount, Usage};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::toolset::Toolset;
use quintet_kernel::{CallId, Item, Time, TurnId};
use serde_json::{Value, json};

use super::agent::builtin_tools::WEB_SEARCH;
use super::agent::tool_selection::is_own_tool;
use super::artifacts::is_own;
use super::call_ids;
use super::wire::Context;
use super::wire::query::REVISION;
use super::wire::tool_results::without_desktop;
use tool_dispatch::PendingCall;
pub(super) use traces::Spans;
use turn_frames::{Frame, TurnFrames};

/// Events that clients are sent only if they are enabled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OptionalEvents {
    /// Timing of the parts of a turn.
    pub traces: bool,
    /// The query and answer of a turn after its end, to be stored as a memory.
    pub memories: bool,
    /// True if answers can be read aloud.
    pub speech: bool,
}

/// The encoder of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Link {
    optional_events: OptionalEvents,
    context: Context,
    /// The tools that the client runs.
    client_tools: HashSet<String>,
    /// Tokens of all model calls so far.
    tokens: u64,
    /// Turns that have not ended, and requested summaries.
    turns: Vec<TurnFrames>,
    /// The turn that is running.
    open: Option<TurnId>,
    /// Number of tokens before the current summary.
    tokens_before: u64,
    /// The summary that the client requested: the id of its request, and the event that begins it.
    summary: Option<(String, Seq)>,
    /// The client's id of the history of the newest turn, if it stores that.
    revision: Option<String>,
    /// Number of histories that were sent outside of turns.
    histories: u64,
    /// The client's ids of turns that it stopped before any of their events was read.
    stopped: HashSet<String>,
}

impl Link {
    /// An encoder for a session with these tools and this usage at the first event that it will be given.
    pub(crate) fn new(context: Context, tools: &Toolset, usage: Usage) -> Self {
        let mut link = Self { context, tokens: usage.total(), ..Self::default() };
        link.choose(tools);
        link
    }

    /// The same encoder, which sends these optional events as well.
    pub(crate) fn with_optional_events(self, optional_events: OptionalEvents) -> Self {
        Self { optional_events, ..self }
    }

    /// The same encoder for a client that has an id of the history so far.
    pub(crate) fn with_revision(self, revision: Option<String>) -> Self {
        Self { revision, ..self }
    }

    /// True if [`Link::encode`] needs the model's prompt for an item.
    pub(crate) fn wants_prompt(&self, item: &Item) -> bool {
        let Item::Event(record) = item else {
            return false;
        };
        match &record.event {
            Event::StepStarted { turn, .. } => {
                let shown = |of: &TurnFrames| self.optional_events.traces || of.steps == 0;
                self.turn(turn).is_some_and(shown)
            }
            Event::TurnCompleted { turn, .. } => {
                self.turn(turn).is_some_and(|of| of.revision.is_some())
            }
            Event::Compacted { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// True if no turn is open at the last item that was encoded.
    pub(crate) fn is_idle(&self) -> bool {
        self.turns.is_empty()
    }

    /// Changes the client's name of the conversation.
    pub(crate) fn rename(&mut self, conversation: &str) {
        self.context.conversation_ref = Some(conversation.into());
        self.turns.iter_mut().for_each(|turn| turn.rename(conversation));
    }

    /// Notes that the client stopped a turn, by its id of it: only the end is still sent.
    pub(crate) fn stop(&mut self, turn: &str) {
        match self.turns.iter_mut().find(|of| of.name() == turn) {
            Some(of) => of.stopped = true,
            None => {
                self.stopped.insert(turn.into());
            }
        }
    }

    /// The history at the end of a turn, for a client that stores it.
    fn history(&mut self, item: &Item, prompt: Option<&Prompt>) -> Option<Frame> {
        let Item::Event(record) = item else { return None };
        let Event::TurnCompleted { turn, .. } = &record.event else { return None };
        let conversation = self.context.conversation_ref.clone();
        let of = self.turn_mut(turn)?;
        let revision = of.revision.take()?;
        let checkpoint = history::Checkpoint { conversation, revision, request: of.name() };
        let payload = checkpoint.payload(prompt?, false, record.at);
        Some(of.frame("model-history-updated", &payload, record.at))
    }

    /// Hands over again those of these calls that the client still has to run.
    pub(crate) fn offer_again(&mut self, is: impl Fn(&CallId) -> bool, at: Time) -> Vec<Frame> {
        let mut frames = Vec::new();
        for turn in &mut self.turns {
            for calls in turn.dispatch.handed.clone() {
                if calls.iter().any(|pending| is(&pending.call)) {
                    frames.push(turn.hand(calls, at));
                }
            }
        }
        frames
    }

    /// Encodes an item. `prompt` is the model's prompt at that item, see [`Link::wants_prompt`].
    pub(crate) fn encode(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        let turn = turn_of(item).filter(|turn| self.turn(turn).is_some_and(|of| of.stopped));
        if let Some(turn) = turn {
            return self.stopped(turn, item);
        }
        let traces = self.optional_events.traces;
        let mut frames: Vec<Frame> = self.history(item, prompt).into_iter().collect();
        if traces {
            frames.extend(self.traced_before(item, prompt));
        }
        frames.extend(self.translate(item, prompt));
        if traces {
            frames.extend(self.traced_after(item, prompt));
        }
        frames
    }

    /// Encodes an item of a turn that the client stopped: only the end is sent, with the number after the
    /// last frame that the client was sent.
    fn stopped(&mut self, turn: &TurnId, item: &Item) -> Vec<Frame> {
        if let Item::Event(record) = item
            && let Event::TurnCompleted { .. } | Event::TurnCancelled { .. } = record.event
        {
            return self.end(turn, |of| vec![of.end(&json!({}), record.at)]);
        }
        let count = self.turn(turn).map_or(0, |of| of.count);
        let mut frames = self.translate(item, None);
        frames.retain(|frame| frame.ends.is_some());
        self.turn_mut(turn).into_iter().for_each(|of| of.count = count);
        frames
    }

    fn translate(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        match item {
            Item::Event(record) => self.event(record, prompt),
            Item::Text { turn, channel, text, at, .. } => {
                let frame = self.turn_mut(turn).map(|of| match channel {
                    Channel::Text => of.stream(text, *at),
                    Channel::Thought => of.frame("llm-thought", &json!({ "status": &**text }), *at),
                });
                frame.into_iter().collect()
            }
            // Progress is not in the journal, so a replay could not number it the same way.
            Item::Progress { .. } => Vec::new(),
        }
    }

    fn event(&mut self, record: &Record, prompt: Option<&Prompt>) -> Vec<Frame> {
        let at = record.at;
        match &record.event {
            Event::ToolsChosen(tools) => self.choose(tools),
            Event::MessageAdded { turn, role: Role::User, parts, options, .. }
                if !options.recalled =>
            {
                return self.accepted(turn, &text_of(parts), options, at).into_iter().collect();
            }
            Event::TurnStarted { turn, .. } => self.open = Some(turn.clone()),
            Event::StepStarted { turn, .. } => return self.step(turn, prompt, at),
            Event::ModelCompleted { turn, calls, usage, .. } => {
                return self.answered(turn, calls, *usage, at);
            }
            Event::CallStarted { turn, call, tool, input, placement, errand, .. } => {
                let call = self.pending(call, tool, input.clone());
                let front_end = errand.as_ref().and_then(|errand| errand.front_end.as_deref());
                let is_ours = *placement == Placement::Client && is_own_tool(front_end);
                return self.call_started(turn, call, is_ours, at);
            }
            Event::ClaimReleased { call, .. } => return self.offer_again(|open| open == call, at),
            Event::CallCompleted { turn, call, tool, outcome, .. } => {
                return self.call_ended(turn, (call, tool), outcome, at);
            }
            Event::CompactionRequested { tokens, .. } => {
                return self.summarizing(record.seq, *tokens, at);
            }
            Event::Compacted { summary, messages, tokens_before, .. } => {
                self.tokens_before = *tokens_before;
                return self.summarized(summary, *messages, prompt, at);
            }
            Event::CompactionFailed { reason } => return self.not_summarized(reason, at),
            Event::TurnCompleted { turn, .. } => {
                let memories = self.optional_events.memories;
                return self.end(turn, |of| {
                    let mut frames = of.finish(at);
                    frames.extend(of.memory(at).filter(|_| memories));
                    frames
                });
            }
            Event::TurnCancelled { turn, .. } => {
                return self.end(turn, |of| vec![of.end(&json!({}), at)]);
            }
            Event::TurnFailed { turn, code, message, .. } => {
                let payload = errors::payload(*code, message);
                return self.end(turn, |of| {
                    vec![Frame { ends: Some(at), ..of.plain("error", &payload, at) }]
                });
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
            | Event::StepInterrupted { .. }
            | Event::VerificationRequested { .. }
            | Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::TurnHeld { .. }
            | Event::TurnReleased { .. }
            | Event::RevertRequested { .. }
            | Event::Reverted { .. }
            | Event::RevertFailed { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::Subagent { .. }
            | Event::SessionClosed { .. } => {}
        }
        Vec::new()
    }

    /// Begins the frames of a query's turn, unless the client stopped it before.
    fn accepted(
        &mut self,
        turn: &TurnId,
        text: &str,
        options: &TurnOptions,
        at: Time,
    ) -> Option<Frame> {
        let name = options.key.as_deref().unwrap_or(turn.as_str());
        let mut of = self.new_turn(Some(turn.clone()), name);
        of.original = text.into();
        of.revision = options.front_end_data(REVISION).and_then(Value::as_str).map(Into::into);
        of.added = estimate(options.wording.as_ref().unwrap_or(&of.original));
        self.revision = of.revision.clone().or(self.revision.take());
        of.stopped = self.stopped.remove(name);
        let accepted = json!({ "status": "accepted" });
        let frame = (!of.stopped).then(|| of.frame("query-accepted", &accepted, at));
        self.turns.push(of);
        frame
    }

    fn choose(&mut self, tools: &Toolset) {
        let ours = tools.client.iter().filter(|tool| is_own_tool(tool.front_end.as_deref()));
        self.client_tools = ours.map(|tool| tool.name.clone()).collect();
    }

    /// Encodes the end of a model call.
    fn answered(
        &mut self,
        turn: &TurnId,
        calls: &[RequestedCall],
        usage: Usage,
        at: Time,
    ) -> Vec<Frame> {
        self.tokens = self.tokens.saturating_add(usage.total());
        let (tokens, client_tools) = (self.tokens, self.client_tools.clone());
        let Some(of) = self.turn_mut(turn) else { return Vec::new() };
        of.added = 0;
        of.dispatch.requested(calls, |tool| client_tools.contains(tool));
        of.requested = calls.iter().map(|call| (call.id.clone(), call.input.clone())).collect();
        let mut frames: Vec<Frame> = of.complete(at).into_iter().collect();
        frames.push(of.frame("token-count", &tokens::payload(usage, tokens), at));
        frames
    }

    fn step(&mut self, turn: &TurnId, prompt: Option<&Prompt>, at: Time) -> Vec<Frame> {
        let Some(of) = self.turn_mut(turn) else { return Vec::new() };
        of.start_step();
        let Some(prompt) = prompt.filter(|_| of.steps == 1) else { return Vec::new() };
        let shown = prompt_disclosure::of_turn(prompt, &of.original);
        shown.iter().map(|(kind, payload)| of.frame(kind, payload, at)).collect()
    }

    /// Encodes the start of a call, which clients of this protocol run, or not.
    fn call_started(
        &mut self,
        turn: &TurnId,
        call: PendingCall,
        is_ours: bool,
        at: Time,
    ) -> Vec<Frame> {
        let Some(of) = self.turn_mut(turn) else { return Vec::new() };
        of.running.insert(call.call.clone(), at);
        if is_ours {
            return of.dispatch.started(call).map(|calls| of.hand(calls, at)).into_iter().collect();
        }
        let mut frames = vec![of.frame("tool-call", &call.payload(true), at)];
        let search = web_search_progress(&call);
        frames.extend(search.map(|payload| of.frame("web-search-progress", &payload, at)));
        frames
    }

    fn call_ended(
        &mut self,
        turn: &TurnId,
        (call, tool): (&CallId, &str),
        outcome: &Outcome,
        at: Time,
    ) -> Vec<Frame> {
        let pending = self.pending(call, tool, Value::Null);
        let Some(of) = self.turn_mut(turn) else { return Vec::new() };
        let started = of.running.remove(call);
        let seconds = at.since(started.unwrap_or(at)).as_secs_f64();
        of.added += estimate(&text_of(&outcome.parts));
        let calls = of.dispatch.ended(call);
        let mut frames: Vec<Frame> = calls.map(|calls| of.hand(calls, at)).into_iter().collect();
        if started.is_none() {
            // The call never ran. Clients store rows in which every output follows its call.
            let input = of.requested.remove(call).unwrap_or_else(|| json!({}));
            let refused = PendingCall { input, ..pending.clone() };
            frames.push(of.frame("tool-call", &refused.payload(true), at));
        }
        frames.push(of.frame("tool-output", &output(&pending, outcome, seconds), at));
        frames
    }

    fn end(&mut self, turn: &TurnId, last: impl Fn(&mut TurnFrames) -> Vec<Frame>) -> Vec<Frame> {
        self.open = self.open.take().filter(|open| open != turn);
        let frames = self.turn_mut(turn).map(last).unwrap_or_default();
        self.turns.retain(|of| of.turn.as_ref() != Some(turn));
        frames
    }

    /// A call, with the id by which the client returns its result.
    fn pending(&self, call: &CallId, tool: &str, input: Value) -> PendingCall {
        let session = self.context.session_id.as_deref().unwrap_or_default();
        let request = call_ids::name(session, call);
        PendingCall { call: call.clone(), request, tool: tool.into(), input }
    }

    fn new_turn(&self, turn: Option<TurnId>, name: &str) -> TurnFrames {
        TurnFrames::new(turn, Context { turn_ref: Some(name.into()), ..self.context.clone() })
    }

    fn turn(&self, turn: &TurnId) -> Option<&TurnFrames> {
        self.turns.iter().find(|of| of.turn.as_ref() == Some(turn))
    }

    fn turn_mut(&mut self, turn: &TurnId) -> Option<&mut TurnFrames> {
        self.turns.iter_mut().find(|of| of.turn.as_ref() == Some(turn))
    }
}

fn turn_of(item: &Item) -> Option<&TurnId> {
    match item {
        Item::Event(record) => record.event.turn(),
        Item::Text { turn, .. } | Item::Progress { turn, .. } => Some(turn),
    }
}

/// The estimated number of tokens of a text.
fn estimate(text: &str) -> u64 {
    TokenCount::guess(text).tokens
}

/// The payload that says what a web search does; `None` for other calls.
fn web_search_progress(call: &PendingCall) -> Option<Value> {
    let mut payload = json!({ "text": "searching the web", "request_id": call.request });
    // The last argument that is given decides: a pattern is searched in a page, a page is opened.
    let kinds = [
        ("query", "search", "searching for"),
        ("url", "open_page", "opening"),
        ("pattern", "find_in_page", "looking for"),
    ];
    for (name, kind, doing) in kinds {
        if let Some(given) = call.input[name].as_str() {
            payload[name] = given.into();
            payload["action_type"] = kind.into();
            payload["text"] = format!("{doing} {given}").into();
        }
    }
    (call.tool == WEB_SEARCH).then_some(payload)
}

/// The payload for the result of a call.
fn output(call: &PendingCall, outcome: &Outcome, seconds: f64) -> Value {
    let text = text_of(&outcome.parts);
    let (text, active_window) = without_desktop(&text);
    let picture = outcome.artifacts.iter().find(|file| file.mime.starts_with("image/"));
    let mut payload = json!({
        "tool_name": call.tool,
        "success": outcome.ok(),
        "execution_time": seconds,
        "output": text,
        "error": outcome.error,
        "request_id": call.request,
        "tool_call_id": call.call.as_str(),
        "metadata": {
            "active_window": active_window,
            "execution_time": seconds,
            "success": outcome.ok(),
            "tool_call_id": call.call.as_str(),
        },
    });
    for name in ["display_attachments", "capture_meta"] {
        if let Some(kept) = outcome.front_end_data.get(name) {
            payload[name] = kept.clone();
        }
    }
    // Clients can fetch only uploaded pictures by their names.
    if let Some(picture) = picture.filter(|picture| is_own(&picture.name)) {
        payload["screenshot_ref"] = json!(picture.name);
    }
    payload
}
