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

/// What clients are told beside what they need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OptionalEvents {
    /// What took how long.
    pub traces: bool,
    /// What may be worth remembering of a turn, once it is over.
    pub memories: bool,
    /// True if answers can be read aloud.
    pub speech: bool,
}

/// What must be remembered of one conversation.
#[derive(Debug, Default)]
pub(crate) struct Link {
    optional_events: OptionalEvents,
    context: Context,
    /// The tools that the client runs.
    client: HashSet<String>,
    /// Tokens of all answers so far.
    spent: u64,
    /// Turns that are not over.
    lines: Vec<TurnFrames>,
    /// The turn that is worked on.
    open: Option<TurnId>,
    /// How many tokens there were when the summary was begun.
    before: u64,
    /// The summary that the client asked for: the name of its request, and the event that begins it.
    summary: Option<(String, Seq)>,
    /// What the client calls the history of the newest turn, if it keeps it.
    revision: Option<String>,
    /// How many histories were sent that belong to no turn.
    histories: u64,
    /// Turns that the client has stopped and of which nothing was read yet, by its names for them.
    stopped: HashSet<String>,
}

impl Link {
    /// The conversation of a client with a session that has these tools and has cost so much, counted
    /// where following begins.
    pub(crate) fn new(context: Context, tools: &Toolset, spent: Usage) -> Self {
        let mut link = Self { context, spent: spent.total(), ..Self::default() };
        link.choose(tools);
        link
    }

    /// The same encoder, which sends these optional events as well.
    pub(crate) fn with_optional_events(self, optional_events: OptionalEvents) -> Self {
        Self { optional_events, ..self }
    }

    /// The same encoder of a client that has a name for the history so far.
    pub(crate) fn with_revision(self, revision: Option<String>) -> Self {
        Self { revision, ..self }
    }

    /// Whether what the model would be asked now has to be given along with an item.
    pub(crate) fn wants_prompt(&self, item: &Item) -> bool {
        let Item::Event(record) = item else {
            return false;
        };
        match &record.event {
            Event::StepStarted { turn, .. } => {
                let first = |line: &TurnFrames| line.steps == 0;
                self.line(turn).is_some_and(|line| self.optional_events.traces || first(line))
            }
            Event::TurnCompleted { turn, .. } => {
                self.line(turn).is_some_and(|line| line.revision.is_some())
            }
            Event::Compacted { .. } => true,
            _ => false,
        }
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// True if no turn is under way, as far as was translated.
    pub(crate) fn is_idle(&self) -> bool {
        self.lines.is_empty()
    }

    /// From now on the client has this name for the conversation.
    pub(crate) fn rename(&mut self, conversation: &str) {
        self.context.conversation_ref = Some(conversation.into());
        self.lines.iter_mut().for_each(|line| line.rename(conversation));
    }

    /// The client has stopped a turn, by its name for it: it is sent no more of it but the end.
    pub(crate) fn stop(&mut self, turn: &str) {
        match self.lines.iter_mut().find(|line| line.name() == turn) {
            Some(line) => line.stopped = true,
            None => {
                self.stopped.insert(turn.into());
            }
        }
    }

    /// The history that a turn led to, for a client that keeps it under a name of its own.
    fn history(&mut self, item: &Item, prompt: Option<&Prompt>) -> Option<Frame> {
        let Item::Event(record) = item else { return None };
        let Event::TurnCompleted { turn, .. } = &record.event else { return None };
        let conversation = self.context.conversation_ref.clone();
        let line = self.line_mut(turn)?;
        let revision = line.revision.take()?;
        let checkpoint = history::Checkpoint { conversation, revision, request: line.name() };
        let payload = checkpoint.payload(prompt?, false, record.at);
        Some(line.frame("model-history-updated", &payload, record.at))
    }

    /// What of these calls the client still has to run, for one that comes back.
    pub(crate) fn offer_again(&mut self, of: impl Fn(&CallId) -> bool, at: Time) -> Vec<Frame> {
        let mut frames = Vec::new();
        for line in &mut self.lines {
            let again = line.dispatch.again().into_iter();
            for handed in again.filter(|handed| handed.calls().iter().any(&of)) {
                frames.push(line.hand(&handed, at));
            }
        }
        frames
    }

    /// Translates an item. `prompt` is what the model would be asked now, see [`Link::wants_prompt`].
    pub(crate) fn encode(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        let turn = turn_of(item).filter(|turn| self.line(turn).is_some_and(|line| line.stopped));
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

    /// What is sent of a turn that the client has stopped: that it is over, under the number after the
    /// last that the client was sent.
    fn stopped(&mut self, turn: &TurnId, item: &Item) -> Vec<Frame> {
        if let Item::Event(record) = item
            && let Event::TurnCompleted { .. } | Event::TurnCancelled { .. } = record.event
        {
            return self.end(turn, |line| vec![line.end(&json!({}), record.at)]);
        }
        let count = self.line(turn).map_or(0, TurnFrames::count);
        let mut frames = self.translate(item, None);
        frames.retain(|frame| frame.ends.is_some());
        self.line_mut(turn).into_iter().for_each(|line| line.recount(count));
        frames
    }

    fn translate(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        match item {
            Item::Event(record) => self.event(record, prompt),
            Item::Text { turn, channel, text, at, .. } => {
                let Some(line) = self.line_mut(turn) else {
                    return Vec::new();
                };
                vec![match channel {
                    Channel::Text => line.say(text, *at),
                    Channel::Thought => {
                        line.frame("llm-thought", &json!({ "status": &**text }), *at)
                    }
                }]
            }
            // A number must be the same whenever the turn is told, and progress is not in the journal.
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
                let here = *placement == Placement::Client && is_own_tool(front_end);
                return self.begun(turn, call, here, at);
            }
            Event::ClaimReleased { call, .. } => return self.offer_again(|open| open == call, at),
            Event::CallCompleted { turn, call, tool, outcome, .. } => {
                return self.over(turn, (call, tool), outcome, at);
            }
            Event::CompactionRequested { tokens, .. } => {
                return self.summarizing(record.seq, *tokens, at);
            }
            Event::Compacted { summary, messages, tokens_before, .. } => {
                self.before = *tokens_before;
                return self.summarized(summary, *messages, prompt, at);
            }
            Event::CompactionFailed { reason } => return self.not_summarized(reason, at),
            Event::TurnCompleted { turn, .. } => {
                let memories = self.optional_events.memories;
                return self.end(turn, |line| {
                    let mut frames = line.finish(at);
                    frames.extend(line.memory(at).filter(|_| memories));
                    frames
                });
            }
            Event::TurnCancelled { turn, .. } => {
                return self.end(turn, |line| vec![line.end(&json!({}), at)]);
            }
            Event::TurnFailed { turn, code, message, .. } => {
                let payload = errors::payload(*code, message);
                return self.end(turn, |line| {
                    vec![Frame { ends: Some(at), ..line.plain("error", &payload, at) }]
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

    /// A query is taken: its turn is told from here on, unless it was stopped before.
    fn accepted(
        &mut self,
        turn: &TurnId,
        text: &str,
        options: &TurnOptions,
        at: Time,
    ) -> Option<Frame> {
        let name = options.key.as_deref().unwrap_or(turn.as_str());
        let mut line = self.new_line(Some(turn.clone()), name);
        line.original = text.into();
        line.revision =
            options.front_end_data(REVISION).and_then(Value::as_str).map(ToOwned::to_owned);
        line.added = weight(options.wording.as_ref().unwrap_or(&line.original));
        self.revision = line.revision.clone().or(self.revision.take());
        line.stopped = self.stopped.remove(name);
        let accepted = json!({ "status": "accepted" });
        let frame = (!line.stopped).then(|| line.frame("query-accepted", &accepted, at));
        self.lines.push(line);
        frame
    }

    fn choose(&mut self, tools: &Toolset) {
        let ours = tools.client.iter().filter(|tool| is_own_tool(tool.front_end.as_deref()));
        self.client = ours.map(|tool| tool.name.clone()).collect();
    }

    /// The model is done with a step.
    fn answered(
        &mut self,
        turn: &TurnId,
        calls: &[RequestedCall],
        usage: Usage,
        at: Time,
    ) -> Vec<Frame> {
        self.spent = self.spent.saturating_add(usage.total());
        let (spent, client) = (self.spent, self.client.clone());
        let Some(line) = self.line_mut(turn) else {
            return Vec::new();
        };
        line.added = 0;
        line.dispatch.asked(calls, |tool| client.contains(tool));
        line.requested = calls.iter().map(|call| (call.id.clone(), call.input.clone())).collect();
        let mut frames: Vec<Frame> = line.complete(at).into_iter().collect();
        frames.push(line.frame("token-count", &tokens::payload(usage, spent), at));
        frames
    }

    fn step(&mut self, turn: &TurnId, prompt: Option<&Prompt>, at: Time) -> Vec<Frame> {
        let Some(line) = self.line_mut(turn) else {
            return Vec::new();
        };
        line.step();
        let Some(prompt) = prompt.filter(|_| line.steps == 1) else {
            return Vec::new();
        };
        let shown = prompt_disclosure::of_turn(prompt, &line.original);
        shown.iter().map(|(kind, payload)| line.frame(kind, payload, at)).collect()
    }

    /// A call begins: clients of this protocol run it, or somebody else does.
    fn begun(&mut self, turn: &TurnId, call: PendingCall, here: bool, at: Time) -> Vec<Frame> {
        let Some(line) = self.line_mut(turn) else {
            return Vec::new();
        };
        line.running.insert(call.call.clone(), at);
        if !here {
            let mut frames = vec![line.frame("tool-call", &call.payload(true), at)];
            frames.extend(
                searching(&call).map(|payload| line.frame("web-search-progress", &payload, at)),
            );
            return frames;
        }
        let handed = line.dispatch.begun(call);
        handed.iter().map(|handed| line.hand(handed, at)).collect()
    }

    fn over(
        &mut self,
        turn: &TurnId,
        (call, tool): (&CallId, &str),
        outcome: &Outcome,
        at: Time,
    ) -> Vec<Frame> {
        let pending = self.pending(call, tool, Value::Null);
        let Some(line) = self.line_mut(turn) else {
            return Vec::new();
        };
        let began = line.running.remove(call);
        let took = at.since(began.unwrap_or(at)).as_secs_f64();
        line.added += weight(&text_of(&outcome.parts));
        let handed = line.dispatch.over(call);
        let mut frames: Vec<Frame> = handed.iter().map(|handed| line.hand(handed, at)).collect();
        if began.is_none() {
            // A call that never ran. Clients keep rows in which every output follows its call.
            let input = line.requested.remove(call).unwrap_or_else(|| json!({}));
            let refused = PendingCall { input, ..pending.clone() };
            frames.push(line.frame("tool-call", &refused.payload(true), at));
        }
        frames.push(line.frame("tool-output", &output(&pending, outcome, took), at));
        frames
    }

    fn end(&mut self, turn: &TurnId, last: impl Fn(&mut TurnFrames) -> Vec<Frame>) -> Vec<Frame> {
        self.open = self.open.take().filter(|open| open != turn);
        let frames = self.line_mut(turn).map(last).unwrap_or_default();
        self.lines.retain(|line| line.turn.as_ref() != Some(turn));
        frames
    }

    /// A call, with the client's name for it.
    fn pending(&self, call: &CallId, tool: &str, input: Value) -> PendingCall {
        let session = self.context.session_id.as_deref().unwrap_or_default();
        let request = call_ids::name(session, call);
        PendingCall { call: call.clone(), request, tool: tool.into(), input }
    }

    fn new_line(&self, turn: Option<TurnId>, name: &str) -> TurnFrames {
        TurnFrames::new(turn, Context { turn_ref: Some(name.into()), ..self.context.clone() })
    }

    fn line(&self, turn: &TurnId) -> Option<&TurnFrames> {
        self.lines.iter().find(|line| line.turn.as_ref() == Some(turn))
    }

    fn line_mut(&mut self, turn: &TurnId) -> Option<&mut TurnFrames> {
        self.lines.iter_mut().find(|line| line.turn.as_ref() == Some(turn))
    }
}

fn turn_of(item: &Item) -> Option<&TurnId> {
    match item {
        Item::Event(record) => record.event.turn(),
        Item::Text { turn, .. } | Item::Progress { turn, .. } => Some(turn),
    }
}

/// How many tokens a text is, by a rule of thumb.
fn weight(text: &str) -> u64 {
    TokenCount::guess(text).tokens
}

/// What is looked for where, as far as a search says so; nothing for other calls.
fn searching(call: &PendingCall) -> Option<Value> {
    let mut payload = json!({ "text": "searching the web", "request_id": call.request });
    // The last that is given says what is done: a word is looked for on a page, a page is opened.
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

/// What came of a call, as the client is told.
fn output(call: &PendingCall, outcome: &Outcome, took: f64) -> Value {
    let text = text_of(&outcome.parts);
    let (text, active_window) = without_desktop(&text);
    let picture = outcome.artifacts.iter().find(|file| file.mime.starts_with("image/"));
    let mut payload = json!({
        "tool_name": call.tool,
        "success": outcome.ok(),
        "execution_time": took,
        "output": text,
        "error": outcome.error,
        "request_id": call.request,
        "tool_call_id": call.call.as_str(),
        "metadata": {
            "active_window": active_window,
            "execution_time": took,
            "success": outcome.ok(),
            "tool_call_id": call.call.as_str(),
        },
    });
    for name in ["display_attachments", "capture_meta"] {
        if let Some(kept) = outcome.front_end_data.get(name) {
            payload[name] = kept.clone();
        }
    }
    // Only what a client handed in can be fetched by its name.
    if let Some(picture) = picture.filter(|picture| is_own(&picture.name)) {
        payload["screenshot_ref"] = json!(picture.name);
    }
    payload
}
