//! Encodes the events of a session as updates for an editor.
//!
//! An encoder first replays the journal: each message is one piece of text, and each call is one update
//! with its result. After [`Encoder::go_live`] everything is sent as it happens. Both use the same events,
//! so an editor that loads a session shows the same as one that was connected all the time.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::change::{FileChange, changed_paths};
use quintet_kernel::event::{ApprovalDecision, Event, FailureCode, Record, SubagentUpdate};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::message::{Attachment, MediaKind, Part, Role, text_of};
use quintet_kernel::model::{Channel, FailureKind, FinishReason};
use quintet_kernel::port::ChangedFile;
use quintet_kernel::question::{Question, QuestionAnswer};
use quintet_kernel::tool::{Assessment, CallSubject, Outcome, Risk};
use quintet_kernel::{ApprovalId, CallId, Item, MessageId, QuestionId, SessionId, State, TurnId};
use serde_json::{Value, json};

use super::decode::Client;
use super::permission::OpenQuestion;
use super::settings::Settings;
use super::tool_call::{self, OUTPUT_LIMIT};
use super::{diff, elicitation, wire};
use crate::jsonrpc::{self, Error};

/// The tool whose calls are shown as a plan.
const PLAN: &str = "update_plan";
/// The most characters of a title, as in the lists of sessions.
const TITLE_LIMIT: usize = 50;

/// The output for an item.
#[derive(Debug)]
pub(super) enum Output {
    /// An update of the session.
    Update(Value),
    /// A question for the user.
    Ask(Box<OpenQuestion>),
    /// A question was closed.
    QuestionClosed(ApprovalId),
    /// A turn ended: its stop reason, or why it failed.
    TurnEnded(TurnId, Result<&'static str, Error>),
    /// A call of this session started a subagent.
    Spawned(SessionId),
    /// The mode, model or thought level changed.
    SettingsChanged,
    /// The history was compacted, or the reason why not.
    Compacted(Result<(), String>),
    /// The changes of a turn were undone in these files, or the reason why not.
    Reverted(TurnId, Result<Vec<String>, String>),
}

/// Content that an item refers to, read before the item is encoded.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The files that a call changed.
    pub(super) changes: Vec<ChangedFile>,
    /// Files of a message, by their names.
    pub(super) files: HashMap<String, Vec<u8>>,
}

/// The content that must be read before an item is encoded.
#[derive(Debug)]
pub(super) enum RequiredContent<'a> {
    Nothing,
    Changes(&'a [FileChange]),
    Files(Vec<Attachment>),
}

/// A call that has not ended.
#[derive(Debug)]
struct OpenCall {
    id: CallId,
    tool: String,
    input: Value,
    status: &'static str,
    /// True if the call was sent to the editor.
    announced: bool,
    /// The output of the call, up to the limit.
    output: String,
    /// The length at which the output is sent again.
    next_output: usize,
}

/// Text of a message that is being replayed.
#[derive(Debug)]
struct OpenText {
    message: String,
    channel: Channel,
    text: String,
}

/// The state of one session for one editor.
#[derive(Debug)]
pub(super) struct Encoder {
    session: SessionId,
    workspace: PathBuf,
    client: Client,
    live: bool,
    text: Option<OpenText>,
    calls: Vec<OpenCall>,
    questions: Vec<OpenQuestion>,
    attachments: HashMap<String, Attachment>,
    /// Turns whose message this editor sent, and therefore shows already.
    own: HashSet<TurnId>,
    /// Turns that were replaced, which are not replayed.
    superseded: HashSet<TurnId>,
    /// The finish reason of the last model call.
    finish: Option<FinishReason>,
    /// The model's context window, and the tokens of the last call.
    window: Option<u64>,
    used: Option<u64>,
    title: Option<String>,
    pub(super) settings: Settings,
}

impl Encoder {
    /// An encoder that has seen no event yet.
    pub(super) fn new(state: &State, client: Client) -> Self {
        Self {
            session: state.id.clone(),
            workspace: state.workspace.clone(),
            client,
            live: false,
            text: None,
            calls: Vec::new(),
            questions: Vec::new(),
            attachments: state
                .attachments
                .iter()
                .map(|file| (file.name.clone(), file.clone()))
                .collect(),
            own: HashSet::new(),
            superseded: state
                .turns
                .iter()
                .filter(|turn| turn.superseded)
                .map(|turn| turn.id.clone())
                .collect(),
            finish: None,
            window: None,
            used: None,
            title: Some(state.summary().title).filter(|title| !title.is_empty()),
            settings: Settings::of(state),
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn workspace(&self) -> &PathBuf {
        &self.workspace
    }

    /// Marks a turn whose message the editor sent, so that it is not sent back.
    pub(super) fn mark_own_turn(&mut self, turn: &TurnId) {
        self.own.insert(turn.clone());
    }

    /// Ends the replay: returns the pending output of the open turn.
    pub(super) fn finish_replay(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        self.flush(&mut out);
        for nth in
            (0..self.calls.len()).filter(|nth| self.calls[*nth].tool != PLAN).collect::<Vec<_>>()
        {
            self.announce(nth, &mut out);
        }
        out
    }

    /// Ends a replay that is not sent.
    pub(super) fn skip_replay(&mut self) {
        self.text = None;
    }

    /// Switches from replay to live updates. Returns what to send after the response.
    pub(super) fn go_live(&mut self) -> Vec<Output> {
        self.live = true;
        let mut out = Vec::new();
        if let Some(title) = &self.title {
            out.push(Output::Update(
                json!({ "sessionUpdate": "session_info_update", "title": title }),
            ));
        }
        out.extend(self.usage());
        out.extend(self.questions.iter().cloned().map(|open| Output::Ask(Box::new(open))));
        out
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The content that must be read before this item is encoded.
    pub(super) fn required_content<'a>(&self, item: &'a Item) -> RequiredContent<'a> {
        let Item::Event(record) = item else { return RequiredContent::Nothing };
        match &record.event {
            Event::CallCompleted { outcome, .. } if !outcome.changes.is_empty() => {
                RequiredContent::Changes(&outcome.changes)
            }
            Event::MessageAdded { turn, parts, .. } if !self.own.contains(turn) => {
                let named = parts.iter().filter_map(|part| match part {
                    Part::Media { name, .. } => self.attachments.get(name).cloned(),
                    Part::Text(_) | Part::Context(_) | Part::Thought(_) | Part::Call { .. } => None,
                });
                RequiredContent::Files(named.collect())
            }
            _ => RequiredContent::Nothing,
        }
    }

    /// Encodes an item.
    pub(super) fn encode(&mut self, item: &Item, contents: &Contents) -> Vec<Output> {
        let mut out = Vec::new();
        let turn = match item {
            Item::Event(record) => record.event.turn(),
            Item::Text { turn, .. } | Item::Progress { turn, .. } => Some(turn),
        };
        if !self.live && turn.is_some_and(|turn| self.superseded.contains(turn)) {
            return out;
        }
        match item {
            Item::Event(record) => self.event(record, contents, &mut out),
            Item::Text { step, channel, text, .. } => {
                self.write(step.as_str(), *channel, text, &mut out);
            }
            Item::Progress { call, text, .. } => self.progress(call, text, &mut out),
        }
        out
    }

    fn event(&mut self, record: &Arc<Record>, contents: &Contents, out: &mut Vec<Output>) {
        match &record.event {
            Event::MessageAdded { turn, role, parts, .. } => {
                self.flush(out);
                if !self.own.remove(turn) {
                    self.message(&record.event, contents, out);
                }
                self.set_title(*role, parts, record, out);
            }
            Event::AttachmentAdded(file) => {
                self.attachments.insert(file.name.clone(), file.clone());
            }
            Event::StepStarted { context_window, .. } => self.window = *context_window,
            Event::ModelRetrying { reason, .. } => {
                self.notice("Asking the model again", reason, out)
            }
            Event::ModelCompleted { finish, calls, usage, .. } => {
                self.flush(out);
                self.finish = Some(finish.clone());
                self.used = Some(usage.total()).filter(|used| *used > 0);
                for call in calls {
                    self.call(&call.id, &call.tool, &call.input, out);
                }
                out.extend(self.usage().filter(|_| self.live));
            }
            Event::StepInterrupted { .. } => self.flush(out),
            Event::VerificationRequested { call, .. } => {
                self.call(&call.id, &call.tool, &call.input, out);
            }
            Event::ApprovalRequested { call, tool, input, assessment, .. } => {
                self.call(call, tool, input, out);
                self.ask(call.clone().into(), (tool, input), assessment, out);
            }
            Event::ApprovalAnswered { call, .. } => self.close_question(&call.clone().into(), out),
            Event::QuestionAsked { .. } | Event::QuestionAnswered { .. } => {
                self.question_event(record, out)
            }
            Event::CallStarted { call, tool, input, .. } => {
                self.call(call, tool, input, out);
                self.status(call, "in_progress", out);
            }
            Event::CallCompleted { call, tool, outcome, .. } => {
                self.close_question(&call.clone().into(), out);
                self.completed((call, tool), outcome, contents, out);
            }
            Event::Subagent { call, session, news, .. } => {
                self.subagent(call, session, news, out);
            }
            Event::TurnHeld { turn, reason } => self.held(turn, reason, out),
            Event::TurnReleased { turn } => self.released(turn, "completed", out),
            Event::TurnCompleted { turn, .. } => self.ended(turn, self.stop_reason(), record, out),
            Event::TurnFailed { turn, code, message, .. } => {
                self.ended(turn, failed(*code, message), record, out);
            }
            Event::TurnCancelled { turn, .. } => self.ended(turn, Ok("cancelled"), record, out),
            Event::Labelled { key, value } => {
                if self.settings.apply_label(key, value.as_deref()) {
                    out.push(Output::SettingsChanged);
                }
            }
            Event::ModelSwitched { model } => {
                self.settings.model = model.clone();
                out.push(Output::SettingsChanged);
            }
            Event::Moved { workspace } => self.workspace.clone_from(workspace),
            Event::CompactionRequested { upto, .. } => {
                self.compaction(upto, "in_progress", None, out);
            }
            Event::Compacted { upto, summary, .. } => {
                self.compaction(upto, "completed", Some(summary), out);
                out.push(Output::Compacted(Ok(())));
            }
            Event::CompactionFailed { reason } => out.push(Output::Compacted(Err(reason.clone()))),
            Event::Reverted { turn, files, .. } => {
                out.push(Output::Reverted(turn.clone(), Ok(files.clone())));
            }
            Event::RevertFailed { turn, reason } => {
                out.push(Output::Reverted(turn.clone(), Err(reason.clone())));
            }
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Instructed { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::ToolsChosen(_)
            | Event::TurnStarted { .. }
            | Event::ContextGathered { .. }
            | Event::TextAppended { .. }
            | Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::CallClaimed { .. }
            | Event::ClaimHolderLost { .. }
            | Event::ClaimReleased { .. }
            | Event::StopRequested { .. }
            | Event::TurnResumed { .. }
            | Event::RevertRequested { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::SessionClosed { .. } => {}
        }
    }

    /// Text of a model: sent at once, or during a replay when its message is complete.
    fn write(&mut self, message: &str, channel: Channel, text: &str, out: &mut Vec<Output>) {
        if self.live {
            return out.push(Output::Update(text_chunk(message, channel, text)));
        }
        match &mut self.text {
            Some(open) if open.message == message && open.channel == channel => {
                open.text.push_str(text);
            }
            Some(_) | None => {
                self.flush(out);
                let (message, text) = (message.to_owned(), text.to_owned());
                self.text = Some(OpenText { message, channel, text });
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<Output>) {
        if let Some(OpenText { message, channel, text }) = self.text.take() {
            out.push(Output::Update(text_chunk(&message, channel, &text)));
        }
    }

    /// A message of a client, or an imported one.
    fn message(&mut self, event: &Event, contents: &Contents, out: &mut Vec<Output>) {
        let Event::MessageAdded { message: id, role, parts, options, .. } = event else { return };
        if let (Role::Tool, Some(call)) = (*role, options.result_of()) {
            let outcome = Outcome::success(text_of(parts));
            return self.completed((call, ""), &outcome, contents, out);
        }
        let kind = match *role {
            Role::User => "user_message_chunk",
            Role::Assistant => "agent_message_chunk",
            Role::System | Role::Tool => return,
        };
        for part in parts {
            let content = match part {
                Part::Text(text) => wire::text(text),
                Part::Media { kind, name, .. } => self.file(*kind, name, contents),
                Part::Thought(text) => {
                    out.push(Output::Update(text_chunk(id.as_str(), Channel::Thought, text)));
                    continue;
                }
                Part::Call { call, tool, input } => {
                    self.call(call, tool, input, out);
                    continue;
                }
                Part::Context(_) => continue,
            };
            out.push(Output::Update(wire::chunk(kind, id.as_str(), content)));
        }
    }

    /// A file of a message: its content if that was read, otherwise a link.
    fn file(&self, kind: MediaKind, name: &str, contents: &Contents) -> Value {
        let mime = self.attachments.get(name).map_or("", |file| file.mime.as_str());
        match (kind, contents.files.get(name)) {
            (MediaKind::Image, Some(bytes)) => wire::image(mime, bytes),
            (MediaKind::Audio, Some(bytes)) => wire::audio(mime, bytes),
            (MediaKind::File, Some(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => {
                    let resource = json!({ "uri": uri(name), "mimeType": mime, "text": text });
                    json!({ "type": "resource", "resource": resource })
                }
                Err(_) => json!({ "type": "resource_link", "name": name, "uri": uri(name) }),
            },
            (_, None) => json!({ "type": "resource_link", "name": name, "uri": uri(name) }),
        }
    }

    /// The first line of the user's first message becomes the title.
    fn set_title(&mut self, role: Role, parts: &[Part], record: &Record, out: &mut Vec<Output>) {
        if self.title.is_some() || role != Role::User {
            return;
        }
        let text = text_of(parts);
        let line = text.trim().lines().next().unwrap_or_default();
        let title: String = line.chars().take(TITLE_LIMIT).collect();
        if !title.is_empty() && self.live {
            let at = record.at.to_string();
            let update =
                json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": at });
            out.push(Output::Update(update));
        }
        self.title = Some(title).filter(|title| !title.is_empty());
    }

    /// Adds a call; it is sent at once, or during a replay when it is complete.
    fn call(&mut self, id: &CallId, tool: &str, input: &Value, out: &mut Vec<Output>) {
        if !self.calls.iter().any(|call| call.id == *id) {
            self.calls.push(OpenCall {
                id: id.clone(),
                tool: tool.to_owned(),
                input: input.clone(),
                status: "pending",
                announced: false,
                output: String::new(),
                next_output: 1,
            });
        }
        let shown = self.live && tool != PLAN;
        let nth = self.calls.iter().position(|call| call.id == *id).filter(|_| shown);
        if let Some(nth) = nth {
            self.announce(nth, out);
        }
    }

    /// Sends a call to the editor, once.
    fn announce(&mut self, nth: usize, out: &mut Vec<Output>) {
        let terminal = self.client.terminal_output;
        let call = &mut self.calls[nth];
        if !std::mem::replace(&mut call.announced, true) {
            let mut update = new_call(call, &self.workspace);
            if terminal && tool_call::kind(&call.tool) == "execute" {
                update["content"] = json!([{ "type": "terminal", "terminalId": call.id.as_str() }]);
                let cwd = self.workspace.to_string_lossy();
                let info = json!({ "terminal_id": call.id.as_str(), "cwd": cwd });
                update["_meta"] = json!({ "terminal_info": info });
            }
            out.push(Output::Update(update));
        }
    }

    fn status(&mut self, id: &CallId, status: &'static str, out: &mut Vec<Output>) {
        let live = self.live;
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else { return };
        let changed = std::mem::replace(&mut call.status, status) != status;
        if changed && live && call.announced {
            out.push(Output::Update(call_update(id.as_str(), json!({ "status": status }))));
        }
    }

    /// Output of a running call. An editor that shows no terminals gets the whole output again each time
    /// its length doubles.
    fn progress(&mut self, id: &CallId, text: &str, out: &mut Vec<Output>) {
        let terminal = self.client.terminal_output;
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id && call.announced) else {
            return;
        };
        let space = OUTPUT_LIMIT.saturating_sub(call.output.len());
        call.output.push_str(&text[..text.floor_char_boundary(space)]);
        if terminal && tool_call::kind(&call.tool) == "execute" {
            let data = json!({ "terminal_id": id.as_str(), "data": text });
            let update = call_update(id.as_str(), json!({ "_meta": { "terminal_output": data } }));
            return out.push(Output::Update(update));
        }
        if call.output.len() >= call.next_output {
            call.next_output = call.output.len() * 2;
            let content = json!([{ "type": "content", "content": wire::text(&call.output) }]);
            out.push(Output::Update(call_update(id.as_str(), json!({ "content": content }))));
        }
    }

    /// A call ended.
    fn completed(
        &mut self,
        (id, tool): (&CallId, &str),
        outcome: &Outcome,
        contents: &Contents,
        out: &mut Vec<Output>,
    ) {
        self.flush(out);
        let open = self.calls.iter().position(|call| call.id == *id);
        let call = match open {
            Some(nth) => self.calls.remove(nth),
            None => OpenCall {
                id: id.clone(),
                tool: tool.to_owned(),
                input: Value::Null,
                status: "pending",
                announced: false,
                output: String::new(),
                next_output: 1,
            },
        };
        if call.tool == PLAN && outcome.ok() {
            return out.push(Output::Update(plan(&call.input)));
        }
        let mut update = if call.announced {
            call_update(id.as_str(), json!({}))
        } else {
            new_call(&call, &self.workspace)
        };
        update["status"] = if outcome.ok() { "completed" } else { "failed" }.into();
        let text = tool_call::output(outcome);
        let mut content = diff::changes_content(&self.workspace, &contents.changes);
        let in_terminal = self.client.terminal_output
            && call.announced
            && tool_call::kind(&call.tool) == "execute";
        if in_terminal {
            content.insert(0, json!({ "type": "terminal", "terminalId": id.as_str() }));
            update["_meta"] = terminal_end(&call, outcome, &text);
        } else if !text.is_empty() && (content.is_empty() || !outcome.ok()) {
            content.push(json!({ "type": "content", "content": wire::text(&text) }));
        }
        update["content"] = content.into();
        update["rawOutput"] = json!({ "output": text });
        let changed = changed_paths(&outcome.changes);
        if !changed.is_empty() {
            let places = changed.into_iter().take(diff::FILES_LIMIT);
            let places = places.map(|path| tool_call::location(&self.workspace, path, None));
            update["locations"] = places.collect();
        }
        out.push(Output::Update(update));
    }

    fn ask(
        &mut self,
        question: ApprovalId,
        (tool, input): (&str, &Value),
        assessment: &Assessment,
        out: &mut Vec<Output>,
    ) {
        let (tool, input) = (tool.to_owned(), input.clone());
        let open = OpenQuestion { question, tool, input, assessment: assessment.clone() };
        self.questions.retain(|known| known.question != open.question);
        self.questions.push(open.clone());
        if self.live {
            out.push(Output::Ask(Box::new(open)));
        }
    }

    fn close_question(&mut self, question: &ApprovalId, out: &mut Vec<Output>) {
        let before = self.questions.len();
        self.questions.retain(|open| open.question != *question);
        if self.questions.len() < before && self.live {
            out.push(Output::QuestionClosed(question.clone()));
        }
    }

    /// An update of a subagent. Its questions are sent under this session, because the editor knows only this one.
    fn subagent(
        &mut self,
        via: &CallId,
        session: &SessionId,
        news: &SubagentUpdate,
        out: &mut Vec<Output>,
    ) {
        match news {
            SubagentUpdate::Asked { call: ApprovalId::Question(id), tool, input, .. } => {
                if let Some(question) = Question::from_input(input) {
                    self.question(id, tool, &question, out);
                }
            }
            SubagentUpdate::Settled { call: ApprovalId::Question(id), answer } => {
                self.question_closed(id, *answer == Some(ApprovalDecision::Allow), out);
            }
            SubagentUpdate::Asked { call, tool, input, assessment, .. } => {
                if let ApprovalId::Call(id) = call {
                    self.call(id, tool, input, out);
                }
                self.ask(call.clone(), (tool, input), assessment, out);
            }
            SubagentUpdate::Settled { call, answer } => {
                self.close_question(call, out);
                if let ApprovalId::Call(id) = call {
                    let outcome = match answer {
                        Some(ApprovalDecision::Allow) => Outcome::success("allowed"),
                        Some(ApprovalDecision::Deny) => Outcome::failure("denied"),
                        None => Outcome::failure("no longer needed"),
                    };
                    self.completed((id, ""), &outcome, &Contents::default(), out);
                }
            }
            SubagentUpdate::Progressed { steps, status } => {
                let text = format!("step {steps}: {status}\n");
                if self.live {
                    self.progress(via, &text, out);
                }
            }
            SubagentUpdate::Spawned { .. } => out.push(Output::Spawned(session.clone())),
            SubagentUpdate::Completed { .. } => {}
        }
    }

    fn question_event(&mut self, record: &Record, out: &mut Vec<Output>) {
        match &record.event {
            Event::QuestionAsked { tool, id, question, .. } => {
                self.question(id, tool, question, out);
            }
            Event::QuestionAnswered { id, answer, .. } => {
                self.question_closed(id, matches!(answer, QuestionAnswer::Accepted { .. }), out);
            }
            _ => {}
        }
    }

    /// A question of a running call. An editor without forms gets it as a permission request for a call.
    fn question(&mut self, id: &QuestionId, tool: &str, asked: &Question, out: &mut Vec<Output>) {
        let input = asked.as_input();
        if !elicitation::is_shown_by(&self.client, asked) {
            let title = format!("{} asks", asked.asker);
            let shown = json!({ "message": asked.message });
            self.call(&CallId::named(id.to_string()), &title, &shown, out);
        }
        self.ask(id.clone().into(), (tool, &input), &asked.assessment(), out);
    }

    fn question_closed(&mut self, id: &QuestionId, accepted: bool, out: &mut Vec<Output>) {
        self.close_question(&id.clone().into(), out);
        self.close_placeholder(id.as_str(), if accepted { "completed" } else { "failed" }, out);
    }

    /// A turn that a crash interrupted waits for the user's permission to continue.
    fn held(&mut self, turn: &TurnId, reason: &str, out: &mut Vec<Output>) {
        let assessment = Assessment {
            risk: Risk::Low,
            reasons: vec![reason.to_owned()],
            reversible: true,
            preview: String::new(),
            subject: CallSubject::default(),
            settled: None,
        };
        if let Some(id) = CallId::parse(turn.as_str()) {
            self.call(&id, "Continue the interrupted turn", &Value::Null, out);
        }
        let title = "Continue the interrupted turn";
        self.ask(ApprovalId::Turn(turn.clone()), (title, &Value::Null), &assessment, out);
    }

    fn released(&mut self, turn: &TurnId, status: &str, out: &mut Vec<Output>) {
        self.close_question(&ApprovalId::Turn(turn.clone()), out);
        self.close_placeholder(turn.as_str(), status, out);
    }

    /// Ends the call that stood for a question or an interrupted turn.
    fn close_placeholder(&mut self, id: &str, status: &str, out: &mut Vec<Output>) {
        if let Some(nth) = self.calls.iter().position(|call| call.id.as_str() == id) {
            let call = self.calls.remove(nth);
            if call.announced {
                out.push(Output::Update(call_update(
                    call.id.as_str(),
                    json!({ "status": status }),
                )));
            }
        }
    }

    fn ended(
        &mut self,
        turn: &TurnId,
        outcome: Result<&'static str, Error>,
        record: &Record,
        out: &mut Vec<Output>,
    ) {
        self.flush(out);
        self.own.remove(turn);
        self.released(turn, "failed", out);
        self.finish = None;
        if self.live {
            let at = record.at.to_string();
            let update = json!({ "sessionUpdate": "session_info_update", "updatedAt": at });
            out.push(Output::Update(update));
        }
        out.push(Output::TurnEnded(turn.clone(), outcome));
    }

    fn stop_reason(&self) -> Result<&'static str, Error> {
        Ok(match &self.finish {
            Some(FinishReason::Length) => "max_tokens",
            Some(FinishReason::Refused) => "refusal",
            Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_)) | None => {
                "end_turn"
            }
        })
    }

    /// The use of the model's context window, if known.
    fn usage(&self) -> Option<Output> {
        let (used, size) = (self.used?, self.window?);
        let update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        Some(Output::Update(update))
    }

    fn notice(&self, title: &str, text: &str, out: &mut Vec<Output>) {
        if self.live && self.client.notices {
            out.push(Output::Update(json!({
                "sessionUpdate": "notice", "severity": "info", "title": title, "description": text,
            })));
        }
    }

    fn compaction(
        &self,
        upto: &MessageId,
        status: &str,
        summary: Option<&String>,
        out: &mut Vec<Output>,
    ) {
        if self.live && self.client.compaction {
            let mut update = json!({
                "sessionUpdate": "compaction_update",
                "compactionId": upto.as_str(),
                "status": status,
            });
            if let Some(summary) = summary {
                update["summary"] = json!([wire::text(summary)]);
            }
            out.push(Output::Update(update));
        }
    }
}

/// The model's plan.
fn plan(input: &Value) -> Value {
    let entry = |step: &Value| json!({ "content": step["step"], "status": step["status"], "priority": "medium" });
    let entries: Vec<_> = input["plan"].as_array().into_iter().flatten().map(entry).collect();
    json!({ "sessionUpdate": "plan", "entries": entries })
}

/// A piece of a model's text.
fn text_chunk(message: &str, channel: Channel, text: &str) -> Value {
    let kind = match channel {
        Channel::Text => "agent_message_chunk",
        Channel::Thought => "agent_thought_chunk",
    };
    wire::chunk(kind, message, wire::text(text))
}

/// Encodes a call that the editor does not know yet.
fn new_call(call: &OpenCall, workspace: &std::path::Path) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call.id.as_str(),
        "title": tool_call::title(&call.tool, &call.input),
        "name": call.tool,
        "kind": tool_call::kind(&call.tool),
        "status": call.status,
        "locations": tool_call::locations(workspace, &call.tool, &call.input),
        "rawInput": call.input,
    })
}

fn call_update(call: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = "tool_call_update".into();
    fields["toolCallId"] = call.into();
    fields
}

/// The end of a command, for an editor that shows terminals.
fn terminal_end(call: &OpenCall, outcome: &Outcome, text: &str) -> Value {
    let id = call.id.as_str();
    let code = tool_call::exit_code(outcome);
    let exit = json!({ "terminal_id": id, "exit_code": code, "signal": null });
    if call.output.is_empty() {
        json!({
            "terminal_output": { "terminal_id": id, "data": text },
            "terminal_exit": exit,
        })
    } else {
        json!({ "terminal_exit": exit })
    }
}

fn uri(name: &str) -> String {
    format!("attachment:///{name}")
}

/// The response for a failed turn: most failures have no stop reason.
fn failed(code: FailureCode, message: &str) -> Result<&'static str, Error> {
    match code {
        FailureCode::StepLimit => Ok("max_turn_requests"),
        FailureCode::TokenLimit => Ok("max_tokens"),
        FailureCode::Model(FailureKind::Refused) => Ok("refusal"),
        // A call was denied, and the configuration ends the turn for that.
        FailureCode::Denied => Ok("cancelled"),
        FailureCode::Model(_)
        | FailureCode::TimeLimit
        | FailureCode::Loop
        | FailureCode::Unverified
        | FailureCode::Interrupted => {
            let error = Error::new(jsonrpc::INTERNAL_ERROR, message);
            Err(error.with(json!({ "code": code.name() })))
        }
    }
}
