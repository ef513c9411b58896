//! Golden transcripts: what a desktop sends and what it is sent, one story a file.
//!
//! `>` a request and `=` what it asks; `!` an event of the journal (or text in flight as `! text …`)
//! and `<` what the desktop is sent, with its `id:`; `~` a desktop that comes back: `~ 7.3` from a
//! position, `~ live` from now on, `~ again` by sending the message again, which the turn of the last
//! `message_added` answers; `~ slow` another desktop claims calls first, `~ quick` this one does.
//! `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::{CallId, Cursor, Item, ItemReader, StepId, Time, TurnId, codec};

use super::decode::{REFUSALS, ROUTES, Route, Step, decode, key, position};
use super::encode::{Claimable, Link};
use super::openapi;
use super::reply::Reply;
use crate::transport::routes::find;

fn route(method: &str, path: &str) -> Result<Route, Reply> {
    find(ROUTES, REFUSALS, method, path)
}

#[test]
fn transcripts() {
    crate::golden::check("src/jarvis/golden", |script| Story::default().tell(script));
}

#[test]
fn the_openapi_document_names_every_route_and_no_other() {
    let document = openapi::document();
    let mut named = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let known = route(&method.to_uppercase(), path);
            assert!(known.is_ok(), "{method} {path} is documented but not served");
            named += 1;
        }
    }
    assert_eq!(named, 9, "a route is served but not documented");
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

/// One desktop and what happens around it.
#[derive(Debug)]
struct Story {
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    link: Link,
    /// Another desktop claims calls before this one does.
    slow: bool,
    written: u64,
    out: String,
}

impl Default for Story {
    fn default() -> Self {
        let link = Link::of_session(Cursor::START, 0, 0);
        let (records, reader, out) = (Vec::new(), ItemReader::default(), String::new());
        Self { records, reader, link, slow: false, written: 0, out }
    }
}

impl Story {
    fn tell(mut self, script: &str) -> String {
        for line in script.lines() {
            match line.get(..2) {
                Some("= " | "< ") => continue,
                _ => writeln!(self.out, "{line}").unwrap(),
            }
            match line.get(..2) {
                Some("> ") => self.request(&line[2..]),
                Some("! ") => self.event(&line[2..]),
                Some("~ ") => self.come_back(&line[2..]),
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
        self.take(&record);
    }

    fn come_back(&mut self, how: &str) {
        if let "slow" | "quick" = how {
            self.slow = how == "slow";
            return;
        }
        let head = self.records.len() as u64;
        let asked = self.records.iter().rev().find_map(|record| match &record.event {
            Event::MessageAdded { turn, .. } => Some((turn.clone(), record.seq - 1)),
            _ => None,
        });
        let (turn, begins) = asked.unwrap();
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
            place => {
                let place = position(Some(place), "").unwrap().unwrap();
                Link::of_session(place, begins, place.seq)
            }
        };
        self.reader = Cursor::after(begins).into();
        for record in self.records.clone() {
            self.take(&record);
        }
        self.show(None);
    }

    fn take(&mut self, record: &Arc<Record>) {
        let mut items = Vec::new();
        self.reader.take(record, &mut items);
        items.iter().for_each(|item| self.show(Some(item)));
    }

    /// Claims what the stream may claim, as the core would let it.
    fn claim(&mut self, calls: Vec<Claimable>) {
        let last = |call: &CallId| {
            self.records.iter().rev().map(|record| &record.event).find(|event| match event {
                Event::CallCompleted { call: about, .. }
                | Event::ClaimHolderLost { call: about, .. }
                | Event::ClaimReleased { call: about, .. } => about == call,
                _ => false,
            })
        };
        let may = |claimable: &Claimable| match last(&claimable.call) {
            Some(Event::CallCompleted { .. }) => false,
            Some(Event::ClaimHolderLost { .. }) => claimable.came_back,
            _ => !self.slow,
        };
        let claimed: Vec<_> = calls.into_iter().filter(may).collect();
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
            None => self.link.begin(),
        };
        for frame in frames {
            let data = String::from_utf8(frame.data).unwrap();
            writeln!(self.out, "< {} {} {data}", frame.position, frame.event).unwrap();
        }
    }
}
