//! Golden transcripts of what a client sends and receives, one scenario per file.
//!
//! `>` is a request and `=` its decoded form or the error; `!` is an event of the journal (or text in
//! flight: `! text …`, `! thought …`); `~ chat N` and `~ response N` start an answer with event N of turn
//! `t1`, `~ provider` one of a provider's model, whose chunks are `! text …` and `! finished …`; `<` is
//! what the client is sent. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::{
    Channel, Chunk, Failure, FailureKind, FinishReason, ModelResponse, RawToolCall, Usage,
};
use quintet_kernel::{Item, ItemReader, SessionId, StepId, Time, TurnId, codec};
use serde_json::{Map, Value};

use super::decode::conversation::Conversation;
use super::decode::{self, REFUSALS, ROUTES, Route, Target};
use super::encode::Progress;
use super::encode::chat::{ChatStream, Head};
use super::encode::model_answer::progress;
use super::encode::response::Response;
use super::encode::turn::TurnReader;
use super::reply::Reply;
use crate::transport::routes::find;

#[test]
fn transcripts() {
    crate::golden::check("src/openai/golden", |script| Transcript::default().replay(script));
}

#[test]
fn no_request_panics() {
    let bodies = [
        "",
        "{",
        "[]",
        "null",
        "{}",
        "\"x\"",
        "\u{0}",
        "{\"model\":\"a/b\",\"messages\":[{}]}",
        "{\"model\":\"a/b\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,\"}}]}]}",
        "{\"model\":\"a/b\",\"messages\":[{\"role\":\"tool\"}],\"tools\":[[]]}",
        "{\"model\":\"a/b\",\"input\":[{\"type\":\"function_call\"}],\"text\":{\"format\":1}}",
        "{\"model\":\"a/b\",\"input\":[{\"content\":[{\"image_url\":\"data:image/png;base64,é\"}],\"role\":\"user\"}]}",
        "{\"model\":\"a/b\",\"input\":[1,[],null]}",
    ];
    for body in bodies {
        for path in ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/audio/speech"]
        {
            let _ = decoded(path, body);
        }
    }
}

/// The decoded form of a request, as text.
fn decoded(path: &str, body: &str) -> Result<String, Reply> {
    let route = find(ROUTES, REFUSALS, "POST", path)?;
    let body = decode::json(body.as_bytes())?;
    Ok(match route {
        Route::Chat => {
            let chat = decode::chat::decode(&body)?;
            match &chat.generation.target {
                Target::Proxy(_) => format!("{chat:?}"),
                Target::Agent(model) => {
                    let conversation = Conversation::of(chat.generation.messages)?;
                    format!("agent {model:?} {conversation:?}")
                }
            }
        }
        Route::Respond => format!("{:?}", decode::responses::decode(&body)?),
        Route::Embeddings => format!("{:?}", decode::senses::embeddings(&body)?),
        Route::Speech => format!("{:?}", decode::senses::speech(&body)?),
        other => format!("{other:?}"),
    })
}

/// The encoder of the answer.
enum Writer {
    Chat(ChatStream),
    Response(Box<Response>),
}

/// One answer of one session.
#[derive(Default)]
struct Transcript {
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    /// The turn that is read; `None` for a provider's model.
    turn: Option<TurnReader>,
    writer: Option<Writer>,
    written: u64,
    out: String,
}

impl Transcript {
    fn replay(mut self, script: &str) -> String {
        for line in script.lines() {
            match line.get(..2) {
                Some("= " | "< ") => continue,
                _ => writeln!(self.out, "{line}").unwrap(),
            }
            match line.get(..2) {
                Some("> ") => self.request(&line[2..]),
                Some("! ") => self.event(&line[2..]),
                Some("~ ") => self.start(&line[2..]),
                _ => {}
            }
        }
        self.out
    }

    fn request(&mut self, line: &str) {
        let (path, body) = line.split_once(' ').unwrap();
        match decoded(path, body) {
            Ok(request) => writeln!(self.out, "= {request}").unwrap(),
            Err(reply) => writeln!(self.out, "= {} {}", reply.status, reply.body()).unwrap(),
        }
    }

    fn start(&mut self, answer: &str) {
        let (kind, begins) = answer.split_once(' ').unwrap_or((answer, "0"));
        let head = Head { id: "chatcmpl-1".into(), created: 1, model: "quintet/fake/fake".into() };
        let mut out = Vec::new();
        if kind == "response" {
            let echo = Map::from_iter([("model".to_owned(), Value::from("quintet/fake/fake"))]);
            let mut response = Response::new("resp_s1_2".into(), 1, echo);
            response.begin().iter().for_each(|event| event.write(&mut out));
            self.writer = Some(Writer::Response(Box::new(response)));
        } else {
            self.writer = Some(Writer::Chat(ChatStream::begin(head, true, &mut out)));
        }
        self.show_frames(&out);
        if kind == "provider" {
            self.turn = None;
            return;
        }
        let session = SessionId::parse("sess_s1").unwrap();
        let turn = TurnId::parse("t1").unwrap();
        self.turn = Some(TurnReader::new(session, turn, begins.parse().unwrap()));
        self.reader = ItemReader::default();
        for record in self.records.clone() {
            self.apply(&record);
        }
    }

    fn event(&mut self, line: &str) {
        let channel = match line.split_once(' ') {
            Some(("text", text)) => Some((Channel::Text, text)),
            Some(("thought", text)) => Some((Channel::Thought, text)),
            _ => None,
        };
        if self.writer.is_some() && self.turn.is_none() {
            return self.chunk(line, channel);
        }
        let at = Time::from_micros(1_735_689_600_000_000 + self.records.len() as i64 * 1_000_000);
        if let Some((channel, text)) = channel {
            let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
            let (offset, text) = (self.written, Arc::from(text));
            let piece = Delta { turn, step, offset, channel, text, at };
            self.written += piece.text.len() as u64;
            let item = self.reader.take_text(&piece);
            return item.iter().for_each(|item| self.show(item));
        }
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        if let quintet_kernel::Event::StepStarted { .. } = event {
            self.written = 0;
        }
        let record = Arc::new(Record { seq: self.records.len() as u64 + 1, at, event });
        self.records.push(Arc::clone(&record));
        self.apply(&record);
    }

    /// Applies a chunk of a provider's model.
    fn chunk(&mut self, line: &str, output: Option<(Channel, &str)>) {
        let usage = Usage { input: 7, output: 3, ..Usage::default() };
        let chunks = match (output, line) {
            (Some((channel, text)), _) => Ok(vec![Chunk::Output(channel, text.into())]),
            (None, "finished") => {
                Ok(vec![Chunk::Finished(ModelResponse::new(FinishReason::Stop, vec![], usage))])
            }
            (None, "calls") => {
                let call =
                    RawToolCall { id: "c1".into(), tool: "weather".into(), arguments: "{}".into() };
                Ok(vec![Chunk::Finished(ModelResponse::new(
                    FinishReason::ToolCalls,
                    vec![call],
                    usage,
                ))])
            }
            (None, _) => Err(Failure { kind: FailureKind::Cut, message: line.into() }),
        };
        progress(chunks).iter().for_each(|progress| self.write(progress));
    }

    fn apply(&mut self, record: &Arc<Record>) {
        let mut items = Vec::new();
        self.reader.take(record, &mut items);
        items.iter().for_each(|item| self.show(item));
    }

    fn show(&mut self, item: &Item) {
        let progress = self.turn.as_mut().map(|turn| turn.take(item)).unwrap_or_default();
        progress.iter().for_each(|progress| self.write(progress));
    }

    fn write(&mut self, progress: &Progress) {
        let mut out = Vec::new();
        match &mut self.writer {
            None => {}
            Some(Writer::Chat(chat)) => chat.take(progress, &mut out),
            Some(Writer::Response(response)) => {
                response.take(progress).iter().for_each(|event| event.write(&mut out));
            }
        }
        self.show_frames(&out);
    }

    fn show_frames(&mut self, out: &[u8]) {
        let text = std::str::from_utf8(out).unwrap();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.for_each(|data| writeln!(self.out, "< {data}").unwrap());
    }
}
