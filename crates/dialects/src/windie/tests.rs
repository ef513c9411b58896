//! Golden transcripts of what a client sends and receives, one scenario per file.
//!
//! `>` is a message and `=` its decoded form or the error response; `!` is an event of the journal (or
//! text in flight, `! text …`, `! thought …`, or progress of a call, `! progress CALL …`) and `<` is what
//! the client is sent. `~ again` sends the open calls of the client again; `~ stop TURN` stops a turn;
//! `~ rename NAME` renames the conversation; `~ beside` is a client that also gets traces and memories;
//! `~ compact ID` requests a compaction, and `~ unneeded ID` one that is not needed. `UPDATE_GOLDEN=1`
//! rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::follow::Delta;
use quintet_kernel::message::text_of;
use quintet_kernel::model::{
    Channel, ModelRef, Prompt, PromptMessage, PromptPart, Sampling, Usage, WebSearch,
};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use quintet_kernel::toolset::Toolset;
use quintet_kernel::{CallId, Item, ItemReader, StepId, Time, TurnId, codec};
use serde_json::Value;

use super::decode::decode;
use super::encode::turn_frames::Frame;
use super::encode::{Link, OptionalEvents};
use super::wire::Context;

#[test]
fn transcripts() {
    crate::golden::check("src/windie/golden", |script| Story::new().tell(script));
}

/// One client and what happens around it.
struct Story {
    link: Link,
    reader: ItemReader,
    records: u64,
    turn: TurnId,
    step: StepId,
    written: u64,
    /// What a model would be asked, as far as a story says.
    prompt: Prompt,
    /// How the turns are worded.
    asked: Vec<(TurnId, String)>,
    /// What was sent so far: turn, number.
    sent: Vec<(String, u64)>,
    out: String,
}

impl Story {
    fn new() -> Self {
        let prompt = Prompt {
            model: ModelRef::parse("fake/fake").unwrap(),
            system: "You help.".into(),
            messages: Vec::new(),
            tools: Vec::new(),
            may_call: true,
            search: WebSearch::Off,
            sampling: Sampling::default(),
            account: None,
        };
        Self {
            link: Link::new(context(), &Toolset::default(), Usage::default()),
            reader: ItemReader::default(),
            records: 0,
            turn: TurnId::parse("t1").unwrap(),
            step: StepId::parse("p1").unwrap(),
            written: 0,
            prompt,
            asked: Vec::new(),
            sent: Vec::new(),
            out: String::new(),
        }
    }

    fn tell(mut self, script: &str) -> String {
        for line in script.lines() {
            match line.get(..2) {
                Some("= " | "< ") => continue,
                _ => writeln!(self.out, "{line}").unwrap(),
            }
            match line.get(..2) {
                Some("> ") => self.request(&line[2..]),
                Some("! ") => self.happens(&line[2..]),
                Some("~ ") => self.front_end_data(&line[2..]),
                _ => {}
            }
        }
        self.out
    }

    fn request(&mut self, line: &str) {
        let said = match decode(line) {
            Ok(message) => format!("{} {:?}", message.id, message.asks),
            Err(answer) => answer.frame(at(0)),
        };
        writeln!(self.out, "= {said}").unwrap();
    }

    fn front_end_data(&mut self, line: &str) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("stop", turn) => self.link.stop(turn),
            ("rename", conversation) => self.link.rename(conversation),
            ("beside", _) => {
                let link = Link::new(context(), &Toolset::default(), Usage::default());
                self.link = link.with_optional_events(OptionalEvents {
                    traces: true,
                    memories: true,
                    speech: false,
                });
            }
            ("compact", request) => self.link.compacting(request, self.records + 1),
            ("unneeded", request) => {
                let frame = self.link.not_compacted(request, "nothing", at(self.records));
                self.show(vec![frame]);
            }
            ("again", _) => {
                let frames = self.link.offer_again(|_| true, at(self.records));
                self.show(frames);
            }
            other => panic!("{other:?}"),
        }
    }

    fn happens(&mut self, line: &str) {
        let at = at(self.records);
        let items = match line.split_once(' ') {
            Some(("text", text)) => self.piece(Channel::Text, text, at),
            Some(("thought", text)) => self.piece(Channel::Thought, text, at),
            Some(("progress", rest)) => {
                let (call, text) = rest.split_once(' ').unwrap();
                let (turn, call) = (self.turn.clone(), CallId::parse(call).unwrap());
                vec![Item::Progress { turn, call, text: text.into(), at }]
            }
            _ => self.record(line, at),
        };
        for item in items {
            let prompt = self.link.wants_prompt(&item).then(|| self.prompt.clone());
            let frames = self.link.encode(&item, prompt.as_ref());
            self.show(frames);
        }
    }

    fn piece(&mut self, channel: Channel, text: &str, at: Time) -> Vec<Item> {
        let (turn, step, offset) = (self.turn.clone(), self.step.clone(), self.written);
        self.written += text.len() as u64;
        let piece = Delta { turn, step, offset, channel, text: text.into(), at };
        self.reader.take_text(&piece).into_iter().collect()
    }

    fn record(&mut self, line: &str, at: Time) -> Vec<Item> {
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        self.notice(&event);
        self.records += 1;
        let mut items = Vec::new();
        self.reader.take(&Arc::new(Record { seq: self.records, at, event }), &mut items);
        items
    }

    /// Remembers what a model would be asked.
    fn notice(&mut self, event: &Event) {
        match event {
            Event::MessageAdded { turn, parts, options, .. } => {
                let text = options.wording.clone().unwrap_or_else(|| text_of(parts));
                self.asked.push((turn.clone(), text));
            }
            Event::TurnStarted { turn, .. } => {
                let asked = self.asked.iter().find(|(of, _)| of == turn).unwrap();
                let text = PromptPart::Text(asked.1.clone());
                self.prompt.messages = vec![PromptMessage::User(vec![text]).into()];
            }
            Event::StepStarted { turn, step, .. } => {
                (self.turn, self.step, self.written) = (turn.clone(), step.clone(), 0);
            }
            Event::ToolsChosen(tools) => {
                let spec = |tool: &quintet_kernel::toolset::ClientTool| {
                    Arc::new(ToolSpec {
                        name: tool.name.clone(),
                        description: tool.description.clone(),
                        schema: tool.schema.clone(),
                        kind: ToolKind::Network,
                        placement: Placement::Client,
                        strict: false,
                    })
                };
                self.prompt.tools = tools.client.iter().map(spec).collect();
            }
            Event::Compacted { summary, .. } => {
                let text = format!("Summary of the conversation so far:\n{summary}");
                self.prompt
                    .messages
                    .insert(0, PromptMessage::User(vec![PromptPart::Text(text)]).into());
            }
            _ => {}
        }
    }

    /// Shows what is sent, and makes sure that the numbers are as clients want them.
    fn show(&mut self, frames: Vec<Frame>) {
        for Frame { turn, text, .. } in frames {
            let frame: Value = serde_json::from_str(&text).unwrap();
            if turn.is_empty() {
                assert_eq!(frame.get("turn_ref"), None);
                writeln!(self.out, "< {text}").unwrap();
                continue;
            }
            assert_eq!(frame["turn_ref"], *turn);
            assert_eq!(frame["id"], *turn);
            if let Some(number) = frame["sequence"].as_u64() {
                let before = self.sent.iter().rev().find(|(of, _)| *of == turn);
                let before = before.map_or(0, |(_, before)| *before);
                assert_eq!(number, before + 1, "{text}");
                let kind = frame["type"].as_str().unwrap();
                assert_eq!(frame["event_id"], format!("{turn}-evt-{number:06}-{kind}"));
                self.sent.push((turn, number));
            }
            writeln!(self.out, "< {text}").unwrap();
        }
    }
}

fn at(seconds: u64) -> Time {
    Time::from_micros(1_735_689_600_000_000 + seconds as i64 * 1_000_000)
}

fn context() -> Context {
    Context {
        session_id: Some("s1".into()),
        user_id: Some("u1".into()),
        conversation_ref: Some("c1".into()),
        turn_ref: None,
    }
}
