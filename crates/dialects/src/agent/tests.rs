//! Golden transcripts of what a client sends and receives, one scenario per file.
//!
//! `>` is a frame of the client and `=` the decoded request or the error response; `!` is an event of the
//! journal (or text in flight, `! text …`) and `<` is what a JSON-RPC client is sent; after `~` it is a
//! client of the original server. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::{Item, ItemReader, SessionId, StepId, Time, TurnId, codec};

use super::decode::{Decoded, RequestFrame, decode};
use super::encode::encode;
use super::session_context::SessionContext;
use super::wire::{Framing, response};

#[test]
fn transcripts() {
    crate::golden::check("src/agent/golden", |script| Transcript::default().replay(script));
}

#[test]
fn no_frame_panics() {
    let params = ["", "null", "[]", "{}", "{\"sessionId\":1}", "{\"sessionId\":\"../x\"}"];
    for method in ["session.create", "agent.message", "agent.respond", "events.sync", "", "x"] {
        for params in params {
            for head in ["", "\"jsonrpc\":\"2.0\",", "\"id\":null,", "\"id\":\"a\","] {
                let frame = format!("{{{head}\"method\":\"{method}\",\"params\":{params}}}");
                let _ = decode(Framing::JsonRpc, &frame);
            }
        }
    }
    for frame in ["", "[", "[]", "[1]", "{}", "null", "\u{0}", "{\"method\":7}"] {
        let _ = decode(Framing::Legacy, frame);
    }
}

/// One client and one session.
struct Transcript {
    framing: Framing,
    records: u64,
    reader: ItemReader,
    context: SessionContext,
    written: u64,
    out: String,
}

impl Default for Transcript {
    fn default() -> Self {
        let session = SessionId::parse("s1").unwrap();
        let context = SessionContext::new(session, ("/repo".into(), "fake/fake".into()), 0);
        let (framing, reader) = (Framing::JsonRpc, ItemReader::default());
        Self { framing, records: 0, reader, context, written: 0, out: String::new() }
    }
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
                Some("~ ") => self.framing = Framing::Legacy,
                _ => {}
            }
        }
        self.out
    }

    fn request(&mut self, line: &str) {
        match decode(self.framing, line) {
            Decoded::One(request) => self.show_request(request),
            Decoded::Batch(requests) => requests.into_iter().for_each(|one| self.show_request(one)),
        }
    }

    fn show_request(&mut self, request: RequestFrame) {
        let RequestFrame { framing, id, request } = request;
        let line = match request {
            Ok(request) => format!("{request:?}"),
            Err(error) => response(framing, id.as_ref(), &Err(error), at(0)).unwrap_or_default(),
        };
        writeln!(self.out, "= {}", line.trim_end()).unwrap();
    }

    fn event(&mut self, line: &str) {
        let at = at(self.records);
        if let Some(text) = line.strip_prefix("text ") {
            let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
            let (offset, channel) = (self.written, Channel::Text);
            let piece = Delta { turn, step, offset, channel, text: text.into(), at };
            self.written += text.len() as u64;
            let item = self.reader.take_text(&piece);
            return self.show(item.as_slice());
        }
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        self.records += 1;
        let record = Arc::new(Record { seq: self.records, at, event });
        let mut items = Vec::new();
        self.reader.take(&record, &mut items);
        self.show(&items);
    }

    fn show(&mut self, items: &[Item]) {
        for frame in items.iter().flat_map(|item| encode(&mut self.context, self.framing, item)) {
            writeln!(self.out, "< {frame}").unwrap();
        }
    }
}

fn at(seconds: u64) -> Time {
    Time::from_micros(1_735_689_600_000_000 + seconds as i64 * 1_000_000)
}
