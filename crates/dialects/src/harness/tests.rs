//! Golden transcripts of what a client sends and receives, one scenario per file.
//!
//! `>` is a request and `=` its decoded form; `!` is an event of the journal (or text in flight, `! text
//! …`) and `<` is what the client is sent, with its `id:`; `~` is a client that reconnects at a position
//! and gets what it missed. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::{Cursor, Item, ItemReader, SessionId, StepId, Time, TurnId, codec};

use super::decode::{Reply, Route, Step, decode};
use super::encode::Link;
use super::position::Position;
use super::routes::{REFUSALS, ROUTES, openapi};
use crate::transport::routes::find;

fn route(method: &str, path: &str) -> Result<Route, Reply> {
    find(ROUTES, REFUSALS, method, path)
}

#[test]
fn transcripts() {
    crate::golden::check("src/harness/golden", |script| Transcript::default().replay(script));
}

#[test]
fn the_openapi_document_has_exactly_the_routes() {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap();
    let mut documented = 0;
    for (path, methods) in paths {
        let concrete = path.replace("{session_id}", "s1").replace("{turn_id}", "t1");
        for method in methods.as_object().unwrap().keys().filter(|key| *key != "parameters") {
            let known = route(&method.to_uppercase(), &concrete);
            assert!(known.is_ok(), "{method} {path} is documented but not served");
            documented += 1;
        }
    }
    assert_eq!(documented, 25, "a route is served but not documented");
}

#[test]
fn a_trailing_slash_is_ignored() {
    let session = SessionId::parse("s1").unwrap();
    assert_eq!(route("GET", "/v1/sessions/"), Ok(Route::ListSessions));
    assert_eq!(route("GET", "/v1/sessions/s1/"), Ok(Route::GetSession(session)));
}

#[test]
fn no_request_panics() {
    for method in ["GET", "POST", "PUT", "DELETE"] {
        for path in [
            "/",
            "//",
            "/v1",
            "/v1/sessions//messages",
            "/v1/sessions/../x",
            "/%00",
            "/v1/sessions/s/turns//retry",
        ] {
            let Ok(route) = route(method, path) else { continue };
            for body in [
                "",
                "{",
                "[]",
                "null",
                "{}",
                "\"x\"",
                "{\"parts\":[1]}",
                "\u{0}",
                "{\"role\":\"user\",\"parts\":[{\"type\":\"image\"}]}",
            ] {
                let _ = decode(&route, body.as_bytes());
            }
        }
    }
}

/// One client and one session.
struct Transcript {
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    link: Link,
    written: u64,
    out: String,
}

impl Default for Transcript {
    fn default() -> Self {
        let start = Position::After(Cursor::START);
        let link = Link::new(SessionId::parse("s1").unwrap(), start);
        let (reader, out) = (ItemReader::default(), String::new());
        Self { records: Vec::new(), reader, link, written: 0, out }
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
        let body = words.next().unwrap_or_default();
        let step = route(method, path).and_then(|route| decode(&route, body.as_bytes()));
        let line = match step {
            Ok(Step::Create(origin)) => format!("create {origin:?}"),
            Ok(Step::Submit(session, command)) => format!("{session} {command:?}"),
            Ok(Step::Both(session, both)) => format!("{session} {:?}, {:?}", both[0], both[1]),
            Ok(Step::Upload(session, file)) => format!("{session} {file:?}"),
            Err(Reply { status, error }) => format!("{status} {}", error.unwrap_or_default()),
        };
        writeln!(self.out, "= {}", line.trim_end()).unwrap();
    }

    fn event(&mut self, line: &str) {
        let at = Time::from_micros(1_735_689_600_000_000 + self.records.len() as i64 * 1_000_000);
        if let Some(text) = line.strip_prefix("text ") {
            let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
            let piece = Delta {
                turn,
                step,
                offset: self.written,
                channel: Channel::Text,
                text: text.into(),
                at,
            };
            self.written += text.len() as u64;
            let item = self.reader.take_text(&piece);
            return self.show(item.as_slice());
        }
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        let record = Arc::new(Record { seq: self.records.len() as u64 + 1, at, event });
        self.records.push(Arc::clone(&record));
        self.apply(&record);
    }

    fn reconnect(&mut self, position: &str) {
        let position = Position::parse(position).expect(position);
        self.reader = position.cursor().into();
        self.link = Link::new(SessionId::parse("s1").unwrap(), position);
        for record in self.records.clone() {
            self.apply(&record);
        }
    }

    fn apply(&mut self, record: &Arc<Record>) {
        let mut items = Vec::new();
        self.reader.take(record, &mut items);
        self.show(&items);
    }

    fn show(&mut self, items: &[Item]) {
        for frame in items.iter().flat_map(|item| self.link.encode(item)) {
            let json = String::from_utf8(frame.json).unwrap();
            writeln!(self.out, "< {} {json}", frame.position).unwrap();
        }
    }
}
