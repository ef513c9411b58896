//! The state of the screen, and how it changes.
//!
//! Pure: keys, messages and ticks are passed in as [`Message`]s, and requests to the daemon are
//! returned as [`Request`]s. Nothing here waits, reads or draws.

mod answers;
mod approval;
mod commands;
mod editor;
mod input_history;
mod keys;
mod notices;
mod sessions;
mod transcript;

use std::collections::VecDeque;

use crossterm::event::KeyEvent;
use serde_json::Value;

pub(crate) use approval::OpenApproval;
pub(crate) use commands::{COMMANDS, KEYS, SlashCommand};
pub(crate) use editor::Editor;
pub(crate) use input_history::{HISTORY_LIMIT, InputHistory};
pub(crate) use sessions::{Row, Sessions};
pub(crate) use transcript::{EntryKind, Tool, Transcript};

use crate::notice::Notice;
use crate::wire::{Request, RpcError, Size};

/// An input of the screen.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    Resize(Size),
    /// A quarter of a second has passed; sent only while something is running.
    Tick,
    Notice(Notice),
    Answer(Request, Result<Value, RpcError>),
    Lost,
    /// The connection is open (again), with the daemon's answer to the handshake.
    Back(Value),
}

/// The state of the screen.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) transcript: Transcript,
    pub(crate) editor: Editor,
    pub(crate) input_history: InputHistory,
    pub(crate) chat: ChatState,
    pub(crate) pane: Pane,
    pub(crate) size: Size,
    /// Number of transcript lines below the screen.
    pub(crate) scroll: usize,
    /// A hint that is shown until the next key.
    pub(crate) hint: Option<String>,
    pub(crate) ticks: u64,
    pub(crate) leaving: bool,
    /// True if another Ctrl-C ends the program.
    armed: bool,
}

/// The conversation.
#[derive(Debug, Default)]
pub(crate) struct ChatState {
    pub(crate) online: bool,
    /// True if the connection must be reopened, so that another session starts.
    pub(crate) reconnect: bool,
    pub(crate) session: Option<String>,
    pub(crate) running: Option<Running>,
    /// Messages that were entered while a query was running.
    pub(crate) waiting: VecDeque<String>,
    pub(crate) approvals: VecDeque<OpenApproval>,
    pub(crate) models: Vec<String>,
    /// The model that answers, if known, and the one that the user chose.
    pub(crate) model: Option<String>,
    pub(crate) chosen: Option<String>,
    pub(crate) tokens: u64,
    /// The prompts of servers, which are also commands.
    pub(crate) prompts: Vec<SlashCommand>,
}

/// A query that is being answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    /// The query's id, once the daemon has sent it.
    pub(crate) query: Option<String>,
    pub(crate) doing: String,
    /// Bytes of the answer that were received.
    pub(crate) received_bytes: u64,
    pub(crate) cancelling: bool,
}

/// The part of the screen that receives keys.
#[derive(Debug, Default)]
pub(crate) enum Pane {
    #[default]
    Chat,
    Help,
    Sessions(Sessions),
    Search(Search),
}

/// A search in the transcript.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) editor: Editor,
    /// The current match, counted from the newest; the view sets how many there are.
    pub(crate) nth: usize,
    pub(crate) found: usize,
}

/// Applies a message to the screen and returns the requests to send.
pub(crate) fn update(model: &mut Model, message: Message) -> Vec<Request> {
    match message {
        Message::Key(key) => model.key(key),
        Message::Paste(text) => model.paste(&text),
        Message::Resize(size) => {
            model.size = size;
            vec![Request::Context(size)]
        }
        Message::Tick => model.tick(),
        Message::Notice(notice) => model.notice(notice),
        Message::Answer(request, answer) => model.answer(&request, answer),
        Message::Lost => model.connection_lost(),
        Message::Back(server) => model.reconnected(&server),
    }
}

impl Model {
    /// An empty screen.
    pub(crate) fn new(size: Size, session: Option<String>, model: Option<String>) -> Self {
        let chat = ChatState { session, chosen: model, ..ChatState::default() };
        Self { size, chat, ..Self::default() }
    }

    /// True while ticks are needed.
    pub(crate) fn is_busy(&self) -> bool {
        self.chat.running.is_some() || !self.chat.approvals.is_empty() || !self.chat.online
    }

    fn tick(&mut self) -> Vec<Request> {
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(approval) = self.chat.approvals.front_mut() {
            approval.age += 1;
        }
        Vec::new()
    }

    /// Sends a message to the daemon, or queues it while a query is running.
    fn send_or_queue(&mut self, text: String) -> Vec<Request> {
        if self.chat.running.is_some() {
            self.chat.waiting.push_back(text);
            return Vec::new();
        }
        self.scroll = 0;
        self.transcript.add_user_text(text.clone());
        let doing = "sending".to_owned();
        self.chat.running = Some(Running { doing, ..Running::default() });
        vec![Request::Query { text, model: self.chat.chosen.clone() }]
    }

    /// Ends the query; the next queued message is sent.
    fn query_ended(&mut self) -> Vec<Request> {
        self.chat.running = None;
        self.transcript.seal();
        match self.chat.waiting.pop_front() {
            Some(text) => self.send_or_queue(text),
            None => Vec::new(),
        }
    }

    /// Cancels the running query, or else the queued messages.
    fn cancel(&mut self) -> Vec<Request> {
        self.chat.waiting.clear();
        let Some(running) = &mut self.chat.running else { return Vec::new() };
        running.cancelling = true;
        running.doing = "stopping".into();
        running.query.clone().map(|query| Request::Cancel { query }).into_iter().collect()
    }

    fn connection_lost(&mut self) -> Vec<Request> {
        self.chat.online = false;
        self.chat.approvals.clear();
        Vec::new()
    }

    fn reconnected(&mut self, server: &Value) -> Vec<Request> {
        self.chat.online = true;
        self.show_greeting(server);
        match &self.chat.session {
            Some(session) => {
                let received_bytes =
                    self.chat.running.as_ref().map(|running| running.received_bytes);
                // An empty screen needs the whole answer.
                let received_bytes = received_bytes.filter(|_| !self.transcript.is_empty());
                vec![Request::Load { session: session.clone(), received_bytes }]
            }
            None if self.chat.running.take().is_some() => {
                self.transcript
                    .add_error("the connection broke before the message arrived; send it again");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn show_greeting(&mut self, server: &Value) {
        let models = server["models"].as_array().into_iter().flatten();
        let named = |model: &Value| model["name"].as_str().map(str::to_owned);
        let default = models.clone().find(|model| model["default"] == true);
        let default = default.or_else(|| models.clone().find(|model| model["loaded"] == true));
        if self.chat.model.is_none() {
            self.chat.model = self.chat.chosen.clone().or_else(|| default.and_then(named));
        }
        self.chat.models = models.filter_map(named).collect();
    }
}

#[cfg(test)]
mod tests;
