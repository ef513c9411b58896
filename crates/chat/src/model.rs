//! The screen's state, and what becomes of it.
//!
//! Pure: keys, messages and the passing of time come in as [`Message`]s, what is to be asked of the
//! daemon goes out as [`Request`]s. Nothing here waits, reads or draws.

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
pub(crate) use input_history::{InputHistory, KEPT};
pub(crate) use sessions::{Row, Sessions};
pub(crate) use transcript::{Piece, Tool, Transcript};

use crate::notice::Notice;
use crate::wire::{Fault, Request, Size};

/// Something that happens to the screen.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Key(KeyEvent),
    Paste(String),
    Resize(Size),
    /// A quarter of a second has passed; told only while something is under way.
    Tick,
    Notice(Notice),
    Answer(Request, Result<Value, Fault>),
    Lost,
    /// The daemon is there (again), and this is what it says of itself.
    Back(Value),
}

/// The screen.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) transcript: Transcript,
    pub(crate) editor: Editor,
    pub(crate) input_history: InputHistory,
    pub(crate) chat: ChatState,
    pub(crate) pane: Pane,
    pub(crate) size: Size,
    /// How many lines the end of the transcript is below the screen.
    pub(crate) scroll: usize,
    /// A hint to the person until the next key.
    pub(crate) hint: Option<String>,
    pub(crate) ticks: u64,
    pub(crate) leaving: bool,
    /// Whether another Ctrl-C ends the program.
    armed: bool,
}

/// The conversation.
#[derive(Debug, Default)]
pub(crate) struct ChatState {
    pub(crate) online: bool,
    /// The connection is to be made again, so that another session begins.
    pub(crate) anew: bool,
    pub(crate) session: Option<String>,
    pub(crate) running: Option<Running>,
    /// What was typed while an answer was being written.
    pub(crate) waiting: VecDeque<String>,
    pub(crate) approvals: VecDeque<OpenApproval>,
    pub(crate) models: Vec<String>,
    /// The model that answers, as far as is known, and the one the person chose.
    pub(crate) model: Option<String>,
    pub(crate) chosen: Option<String>,
    pub(crate) tokens: u64,
}

/// A query that is being answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    /// The query's id, once the daemon has sent it.
    pub(crate) query: Option<String>,
    pub(crate) doing: String,
    /// Bytes of the answer that are here.
    pub(crate) had: u64,
    pub(crate) cancelling: bool,
}

/// What has the keys.
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
    /// Which of the places, counted from the newest; the view says how many there are.
    pub(crate) nth: usize,
    pub(crate) found: usize,
}

/// What becomes of the screen, and what is to be asked.
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
        Message::Lost => model.lost(),
        Message::Back(server) => model.back(&server),
    }
}

impl Model {
    /// A screen before anything was said.
    pub(crate) fn new(size: Size, session: Option<String>, model: Option<String>) -> Self {
        let chat = ChatState { session, chosen: model, ..ChatState::default() };
        Self { size, chat, ..Self::default() }
    }

    /// Whether time matters.
    pub(crate) fn is_busy(&self) -> bool {
        self.chat.running.is_some() || !self.chat.approvals.is_empty() || !self.chat.online
    }

    fn tick(&mut self) -> Vec<Request> {
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(ask) = self.chat.approvals.front_mut() {
            ask.age += 1;
        }
        Vec::new()
    }

    /// Asks the daemon, or remembers to.
    fn ask(&mut self, text: String) -> Vec<Request> {
        if self.chat.running.is_some() {
            self.chat.waiting.push_back(text);
            return Vec::new();
        }
        self.scroll = 0;
        self.transcript.say(text.clone());
        let doing = "sending".to_owned();
        self.chat.running = Some(Running { doing, ..Running::default() });
        vec![Request::Query { text, model: self.chat.chosen.clone() }]
    }

    /// The query is over; what waited is asked now.
    fn over(&mut self) -> Vec<Request> {
        self.chat.running = None;
        self.transcript.seal();
        match self.chat.waiting.pop_front() {
            Some(text) => self.ask(text),
            None => Vec::new(),
        }
    }

    /// Stops what is being written, or what waits to be asked.
    fn cancel(&mut self) -> Vec<Request> {
        self.chat.waiting.clear();
        let Some(running) = &mut self.chat.running else { return Vec::new() };
        running.cancelling = true;
        running.doing = "stopping".into();
        running.query.clone().map(|query| Request::Cancel { query }).into_iter().collect()
    }

    fn lost(&mut self) -> Vec<Request> {
        self.chat.online = false;
        self.chat.approvals.clear();
        Vec::new()
    }

    fn back(&mut self, server: &Value) -> Vec<Request> {
        self.chat.online = true;
        self.greet(server);
        match &self.chat.session {
            Some(session) => {
                let had = self.chat.running.as_ref().map(|running| running.had);
                // A screen that shows nothing yet wants to be told everything.
                let had = had.filter(|_| !self.transcript.is_empty());
                vec![Request::Load { session: session.clone(), had }]
            }
            None if self.chat.running.take().is_some() => {
                self.transcript
                    .trouble("the connection broke before the message arrived; send it again");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn greet(&mut self, server: &Value) {
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
