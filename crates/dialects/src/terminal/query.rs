//! The state of one running query: what is needed to stream it and to report its usage.

use std::collections::HashMap;

use quintet_kernel::follow::unseen_text;
use quintet_kernel::model::Usage;
use quintet_kernel::{CallId, StepId, Time, TurnId};
use serde_json::{Value, json};

use super::blocks::{Block, BlockEvent, BlockParser, Kind};
use super::page::{ClientKind, Page};
use super::wire::{self, Token, TokenMeta};

/// One query.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) id: String,
    /// True if the client wants the words as they come.
    streams: bool,
    /// Bytes of the answer that the client has from before.
    had: u64,
    index: u64,
    offset: u64,
    answer: String,
    step: Option<StepId>,
    parser: BlockParser,
    found: u64,
    /// True if the step has written anything yet.
    pub(super) silent: bool,
    started: Option<Time>,
    model: Option<String>,
    tools: Vec<String>,
    running: HashMap<CallId, Time>,
    /// What the original client prints.
    page: Option<Page>,
}

/// What comes of some text.
#[derive(Debug)]
pub(super) enum Part {
    Token(Token),
    /// A block: its id, the block, and what the original client prints of it.
    Block(String, Block, String),
}

impl Query {
    pub(super) fn new(turn: &TurnId, streams: bool, had: u64, client_kind: ClientKind) -> Self {
        Self {
            id: wire::query_id(turn),
            streams,
            had,
            index: 0,
            offset: 0,
            answer: String::new(),
            step: None,
            parser: BlockParser::default(),
            found: 0,
            silent: true,
            started: None,
            model: None,
            tools: Vec::new(),
            running: HashMap::new(),
            page: (client_kind == ClientKind::Original).then(Page::default),
        }
    }

    /// Begins, perhaps anew.
    pub(super) fn begin(&mut self, at: Time) {
        self.started = Some(at);
        self.tools.clear();
    }

    /// A model is asked.
    pub(super) fn step(&mut self, step: &StepId, model: String) {
        (self.step, self.model) = (Some(step.clone()), Some(model));
        (self.parser, self.found, self.silent) = (BlockParser::default(), 0, true);
        if let Some(page) = &mut self.page {
            page.step();
        }
    }

    /// Another model answered than was asked.
    pub(super) fn answered_by(&mut self, model: String) {
        self.model = Some(model);
    }

    /// The answer goes on.
    pub(super) fn write(&mut self, text: &str) -> Vec<Part> {
        self.silent = false;
        if !self.streams {
            self.answer.push_str(text);
        }
        let found = self.parser.push(text);
        self.parts(found)
    }

    /// The step's text is over.
    pub(super) fn end_step(&mut self) -> Vec<Part> {
        let found = self.parser.finish();
        self.parts(found)
    }

    pub(super) fn call_started(&mut self, call: &CallId, tool: &str, at: Time) {
        self.running.insert(call.clone(), at);
        if !self.tools.iter().any(|known| known == tool) {
            self.tools.push(tool.to_owned());
        }
    }

    /// How long the call took, in milliseconds; 0 if it never ran.
    pub(super) fn call_took(&mut self, call: &CallId, at: Time) -> u128 {
        self.running.remove(call).map_or(0, |started| at.since(started).as_millis())
    }

    /// What is to be printed of a block.
    pub(super) fn printed(&mut self, kind: Kind, content: &str) -> String {
        match &mut self.page {
            None => content.to_owned(),
            Some(page) => page.block(kind, content),
        }
    }

    /// Notes that the answer follows that to another query.
    pub(super) fn follows(&mut self) {
        if let Some(page) = &mut self.page {
            page.follow();
        }
    }

    /// A question was put to the client.
    pub(super) fn asked(&mut self) {
        if let Some(page) = &mut self.page {
            page.question();
        }
    }

    /// What it took.
    pub(super) fn figures(&self, usage: Usage, at: Time) -> Value {
        let took = self.started.map(|started| at.since(started)).unwrap_or_default();
        let seconds = took.as_secs_f64();
        let pace = if seconds > 0.0 { usage.output as f64 / seconds } else { 0.0 };
        let mut figures = json!({
            "total_tokens": usage.total(),
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "tokens_per_second": (pace * 10.0).round() / 10.0,
            "tools_executed": self.tools,
            "model_used": self.model,
            "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        if !self.streams {
            figures["content"] = self.answer.as_str().into();
        }
        figures
    }

    fn parts(&mut self, found: Vec<BlockEvent>) -> Vec<Part> {
        let mut parts = Vec::with_capacity(found.len());
        for one in found {
            match one {
                BlockEvent::Text { text, fenced } => parts.extend(self.token(text, fenced)),
                BlockEvent::Block(block) => {
                    self.found += 1;
                    let step = self.step.as_ref().map_or("", StepId::as_str);
                    let id = format!("block-{step}-{}", self.found);
                    // A client that says how far it was has the blocks up to there.
                    if self.offset > self.had || self.had == 0 {
                        // Prose was printed already, unless nothing is before it is whole.
                        let printed = if block.kind == Kind::Text && self.streams {
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
        if !self.streams || self.offset <= self.had {
            return None;
        }
        let token = unseen_text(&text, offset, self.had).to_owned();
        let seen = text.len() - token.len();
        let content = match &mut self.page {
            _ if fenced => String::new(),
            Some(page) => page.prose(&token),
            None => token.clone(),
        };
        let kind = if fenced { "code" } else { "text" };
        let metadata = TokenMeta { kind, offset: offset + seen as u64 };
        let index = self.index;
        self.index += 1;
        Some(Part::Token(Token { token, content, index, metadata }))
    }
}
