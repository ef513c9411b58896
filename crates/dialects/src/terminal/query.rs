//! The state of an open query: what is needed to stream it and to report its usage.

use std::collections::HashMap;

use quintet_kernel::follow::unseen_text;
use quintet_kernel::model::Usage;
use quintet_kernel::{CallId, StepId, Time, TurnId};
use serde_json::{Value, json};

use super::blocks::{Block, BlockEvent, BlockKind, BlockParser};
use super::screen::{ClientKind, Screen};
use super::wire::{self, Token, TokenMeta};

/// One query.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) id: String,
    /// True if the client wants tokens as they are written.
    streams: bool,
    /// Bytes of the answer that the client already has.
    received: u64,
    index: u64,
    offset: u64,
    answer: String,
    step: Option<StepId>,
    parser: BlockParser,
    events: u64,
    /// True if the step has written nothing yet.
    pub(super) is_empty: bool,
    started: Option<Time>,
    model: Option<String>,
    tools: Vec<String>,
    running: HashMap<CallId, Time>,
    /// The screen of the original client; `None` for other clients.
    screen: Option<Screen>,
}

/// A piece of the answer to send.
#[derive(Debug)]
pub(super) enum Part {
    Token(Token),
    /// A block: its id, the block, and the text that the original client prints for it.
    Block(String, Block, String),
}

impl Query {
    pub(super) fn new(
        turn: &TurnId,
        streams: bool,
        received: u64,
        client_kind: ClientKind,
    ) -> Self {
        Self {
            id: wire::query_id(turn),
            streams,
            received,
            index: 0,
            offset: 0,
            answer: String::new(),
            step: None,
            parser: BlockParser::default(),
            events: 0,
            is_empty: true,
            started: None,
            model: None,
            tools: Vec::new(),
            running: HashMap::new(),
            screen: (client_kind == ClientKind::Original).then(Screen::default),
        }
    }

    /// Starts an attempt of the turn.
    pub(super) fn start(&mut self, at: Time) {
        self.started = Some(at);
        self.tools.clear();
    }

    /// Starts a model call.
    pub(super) fn step(&mut self, step: &StepId, model: String) {
        (self.step, self.model) = (Some(step.clone()), Some(model));
        (self.parser, self.events, self.is_empty) = (BlockParser::default(), 0, true);
        if let Some(screen) = &mut self.screen {
            screen.step();
        }
    }

    /// Another model than the requested one answered.
    pub(super) fn answered_by(&mut self, model: String) {
        self.model = Some(model);
    }

    /// Adds text to the answer.
    pub(super) fn write(&mut self, text: &str) -> Vec<Part> {
        self.is_empty = false;
        if !self.streams {
            self.answer.push_str(text);
        }
        let events = self.parser.push(text);
        self.parts(events)
    }

    /// Ends the text of the step.
    pub(super) fn end_step(&mut self) -> Vec<Part> {
        let events = self.parser.finish();
        self.parts(events)
    }

    pub(super) fn call_started(&mut self, call: &CallId, tool: &str, at: Time) {
        self.running.insert(call.clone(), at);
        if !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }

    /// The duration of a call, in milliseconds; 0 if it never ran.
    pub(super) fn call_duration(&mut self, call: &CallId, at: Time) -> u128 {
        self.running.remove(call).map_or(0, |started| at.since(started).as_millis())
    }

    /// The text that the original client prints for a block.
    pub(super) fn printed(&mut self, kind: BlockKind, content: &str) -> String {
        match &mut self.screen {
            None => content.to_owned(),
            Some(screen) => screen.block(kind, content),
        }
    }

    /// Records that the answer to another query was printed before this one.
    pub(super) fn follow_other(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.follow_other();
        }
    }

    /// Records that a question was sent to the client.
    pub(super) fn question_sent(&mut self) {
        if let Some(screen) = &mut self.screen {
            screen.question();
        }
    }

    /// The statistics of the query.
    pub(super) fn statistics(&self, usage: Usage, at: Time) -> Value {
        let duration = self.started.map(|started| at.since(started)).unwrap_or_default();
        let seconds = duration.as_secs_f64();
        let pace = if seconds > 0.0 { usage.output as f64 / seconds } else { 0.0 };
        let mut statistics = json!({
            "total_tokens": usage.total(),
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "tokens_per_second": (pace * 10.0).round() / 10.0,
            "tools_executed": self.tools,
            "model_used": self.model,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        });
        if !self.streams {
            statistics["content"] = self.answer.as_str().into();
        }
        statistics
    }

    fn parts(&mut self, events: Vec<BlockEvent>) -> Vec<Part> {
        let mut parts = Vec::with_capacity(events.len());
        for one in events {
            match one {
                BlockEvent::Text { text, fenced } => parts.extend(self.token(text, fenced)),
                BlockEvent::Block(block) => {
                    self.events += 1;
                    let step = self.step.as_ref().map_or("", StepId::as_str);
                    let id = format!("block-{step}-{}", self.events);
                    // A client that sent its offset has the blocks up to there.
                    if self.offset > self.received || self.received == 0 {
                        // Prose was already printed as tokens, unless the client does not stream.
                        let printed = if block.kind == BlockKind::Text && self.streams {
                            String::new()
                        } else {
                            self.printed(block.kind, &block.content)
                        };
                        parts.push(Part::Block(id, block, printed));
                    }
                }
            }
        }
        parts
    }

    fn token(&mut self, text: String, fenced: bool) -> Option<Part> {
        let offset = self.offset;
        self.offset += text.len() as u64;
        if !self.streams || self.offset <= self.received {
            return None;
        }
        let token = unseen_text(&text, offset, self.received).to_owned();
        let seen = text.len() - token.len();
        let content = match &mut self.screen {
            _ if fenced => String::new(),
            Some(screen) => screen.prose(&token),
            None => token.clone(),
        };
        let kind = if fenced { "code" } else { "text" };
        let metadata = TokenMeta { kind, offset: offset + seen as u64 };
        let index = self.index;
        self.index += 1;
        Some(Part::Token(Token { token, content, index, metadata }))
    }
}
