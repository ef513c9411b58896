//! Golden transcripts of what a desktop sends and receives, one scenario per file.
//!
//! `>` is a request and `=` its decoded form; `!` is an event of the journal (or text in flight, `! text
//! …`) and `<` is what the desktop is sent, with its `id:`; `~` is a desktop that reconnects: `~ 7.3` at a
//! position, `~ live` for new events, `~ again` by sending the message of the last `message_added` again;
//! after `~ slow` another desktop claims calls first, after `~ quick` this one does. `UPDATE_GOLDEN=1`
//! rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::{CallId, Cursor, Item, ItemReader, StepId, Time, TurnId, codec};

use super::decode::{REFUSALS, ROUTES, Route, Step, decode, key, openapi, position};
use super::encode::{Claimable, Link};
use super::reply::Reply;
use crate::transport::routes::find;

fn route(method: &str, path: &str) -> Result<Route, Reply> {
    find(ROUTES, REFUSALS, method, path)
}

#[test]
fn transcripts() {
    crate::golden::check("src/jarvis/golden", |script| Transcript::default().replay(script));
}

#[test]
fn the_openapi_document_has_exactly_the_routes() {
    let document = openapi();
    let mut documented = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let known = route(&method.to_uppercase(), path);
            assert!(known.is_ok(), "{method} {path} is documented but not served");
            documented += 1;
        }
    }
    assert_eq!(documented, 9, "a route is served but not documented");
}

#[test]
fn no_request_panics() {
    let paths = ["/v1/sessions", "/v1/chat", "/v1/tools/result", "/v1/memory/write", "/v1/stream"];
    let paths = paths.into_iter().chain(["/v1/memory/search", "/v1/memory/get", "//", "/%00"]);
    let bodies = ["", "{", "[]", "null", "{}", "\"x\"", "{\"message\":{\"parts\":[1]}}", "\u{0}"];
    let queries = ["", "=", "q", "q=%", "limit=-1&q=x", "path=..&line_start=99999999999999999999"];
    for path in paths {
        for method in ["GET", "POST", "PUT"] {
            let Ok(route) = route(method, path) else { continue };
            for (body, query) in bodies.iter().flat_map(|b| queries.iter().map(move |q| (b, q))) {
                let _ = decode(route, query, body.as_bytes());
                let _ = position(Some(body), query);
                let _ = key(Some(body));
            }
        }
    }
}

/// One desktop and one session.
#[derive(Debug)]
struct Transcript {
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    link: Link,
    /// True if another desktop claims calls before this one.
    slow: bool,
    written: u64,
    out: String,
}

impl Default for Transcript {
    fn default() -> Self {
        let link = Link::of_session(Cursor::START, 0, 0);
        let (records, reader, out) = (Vec::new(), ItemReader::default(), String::new());
        Self { records, reader, link, slow: false, written: 0, out }
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
                Some("~ ") => self.reconnect(&line[2..]),
                _ => {}
            }
        }
        self.out
    }

    fn request(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let body = words.next().unwrap_or_default();
        let step = route(method, path).and_then(|route| decode(route, query, body.as_bytes()));
        let line = match step {
            Ok(Step::Submit(session, command)) => format!("{session} {command:?}"),
            Ok(step) => format!("{step:?}"),
            Err(reply @ Reply { status, .. }) => {
                format!("{status} {}", String::from_utf8(reply.body()).unwrap())
            }
        };
        writeln!(self.out, "= {line}").unwrap();
    }

    fn event(&mut self, line: &str) {
        let at = Time::from_micros(1_735_689_600_000_000 + self.records.len() as i64 * 1_000_000);
        if let Some(text) = line.strip_prefix("text ") {
            let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
            let (offset, channel, text) = (self.written, Channel::Text, text.into());
            let piece = Delta { turn, step, offset, channel, text, at };
            self.written += piece.text.len() as u64;
            let item = self.reader.take_text(&piece);
            return item.iter().for_each(|item| self.show(Some(item)));
        }
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        let record = Arc::new(Record { seq: self.records.len() as u64 + 1, at, event });
        self.records.push(Arc::clone(&record));
        self.apply(&record);
    }

    fn reconnect(&mut self, how: &str) {
        if let "slow" | "quick" = how {
            self.slow = how == "slow";
            return;
        }
        let head = self.records.len() as u64;
        let last_message = self.records.iter().rev().find_map(|record| match &record.event {
            Event::MessageAdded { turn, .. } => Some((turn.clone(), record.seq - 1)),
            _ => None,
        });
        let (turn, begins) = last_message.unwrap();
        let attempts = self.records.iter().filter(|record| match &record.event {
            Event::TurnStarted { turn: started, .. } => *started == turn,
            _ => false,
        });
        let attempt = attempts.count() as u32;
        self.link = match how {
            "live" => Link::of_session(Cursor::after(head), begins, 0),
            "again" => {
                let from = Cursor::after(begins);
                Link::of_turn((turn, attempt), from, begins, head)
            }
            at => {
                let at = position(Some(at), "").unwrap().unwrap();
                Link::of_session(at, begins, at.seq)
            }
        };
        self.reader = Cursor::after(begins).into();
        for record in self.records.clone() {
            self.apply(&record);
        }
        self.show(None);
    }

    fn apply(&mut self, record: &Arc<Record>) {
        let mut items = Vec::new();
        self.reader.take(record, &mut items);
        items.iter().for_each(|item| self.show(Some(item)));
    }

    /// Claims calls if the core would allow it.
    fn claim(&mut self, calls: Vec<Claimable>) {
        let last = |call: &CallId| {
            self.records.iter().rev().map(|record| &record.event).find(|event| match event {
                Event::CallCompleted { call: about, .. }
                | Event::ClaimHolderLost { call: about, .. }
                | Event::ClaimReleased { call: about, .. } => about == call,
                _ => false,
            })
        };
        let is_allowed = |claimable: &Claimable| match last(&claimable.call) {
            Some(Event::CallCompleted { .. }) => false,
            Some(Event::ClaimHolderLost { .. }) => claimable.came_back,
            _ => !self.slow,
        };
        let claimed: Vec<_> = calls.into_iter().filter(is_allowed).collect();
        claimed.into_iter().for_each(|claimable| self.link.claimed(claimable.call));
    }

    fn show(&mut self, item: Option<&Item>) {
        let calls = match item {
            Some(item) => self.link.claimable(std::slice::from_ref(item)),
            None => self.link.unsent(),
        };
        self.claim(calls);
        let frames = match item {
            Some(item) => self.link.encode(item),
            None => self.link.start(),
        };
        for frame in frames {
            let data = String::from_utf8(frame.data).unwrap();
            writeln!(self.out, "< {} {} {data}", frame.position, frame.event).unwrap();
        }
    }
}
