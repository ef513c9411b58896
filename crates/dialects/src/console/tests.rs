//! Golden transcripts: what the page sends and what it is sent, one story a file.
//!
//! `>` a request and `=` what it decodes to; `!` an event of the journal (or text in flight as
//! `! text …`) and `<` what the page is sent; `?` a query of the stream and
//! `u` one of the usage. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::http::Request;
use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::{Item, ItemReader, StepId, Time, TurnId, codec};

use super::access::Login;
use super::decode::{Reply, Route, Step, decode};
use super::encode;
use super::routes::{REFUSALS, ROUTES};
use super::stream;
use super::usage::Range;
use crate::transport::routes::find;

fn route(method: &str, path: &str) -> Result<Route, Reply> {
    find(ROUTES, REFUSALS, method, path)
}

#[test]
fn transcripts() {
    crate::golden::check("src/console/golden", |script| Story::default().tell(script));
}

#[test]
fn every_embedded_file_has_a_route() {
    for path in ["/app.js", "/app.css", "/icon.svg", "/manifest.webmanifest"] {
        assert_eq!(route("GET", path), Ok(Route::File(path.into())));
        assert!(super::assets::file(path).is_some(), "{path}");
    }
}

#[test]
fn no_request_panics() {
    for method in ["GET", "POST", "PUT"] {
        for path in ["/", "//", "/api", "/api/sessions//messages", "/sessions/../x", "/%00"] {
            let Ok(route) = route(method, path) else { continue };
            for body in ["", "{", "[]", "null", "{}", "\u{0}"] {
                let _ = decode(&route, body.as_bytes());
            }
        }
    }
}

#[test]
fn a_browser_needs_the_token_once() {
    let admits = |login: &Login, name: &str, value: &str| {
        let request = Request::builder().uri("/").header(name, value).body(()).unwrap();
        login.admits(&request.into_parts().0)
    };
    assert!(admits(&Login::new(None), "x", "y"));
    let login = Login::new(Some("secret"));
    assert!(!admits(&login, "x", "y"));
    assert!(!admits(&login, "cookie", "quintet_console=secret"));
    assert!(admits(&login, "authorization", "Bearer secret"));
    assert_eq!(login.enter(b"token=wrong").status(), 401);
    let request = |uri: &str| Request::builder().uri(uri).body(()).unwrap().into_parts().0;
    assert!(login.named(&request("/sessions/s1?access_token=wrong")).is_none());
    let sent_on = login.named(&request("/sessions/s1?access_token=secret")).unwrap();
    assert_eq!(sent_on.headers()["location"], "/sessions/s1");
    let entered = login.enter(b"token=secret");
    assert_eq!(entered.status(), 303);
    let cookie = entered.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert!(admits(&login, "cookie", &format!("other=1; {pair}")));
}

#[derive(Default)]
struct Story {
    reader: ItemReader,
    events: u64,
    written: u64,
    out: String,
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
                Some("? ") => {
                    let read = stream::Request::parse(&line[2..]);
                    writeln!(self.out, "= {read:?}").unwrap();
                }
                Some("u ") => {
                    let read = Range::parse(&line[2..]);
                    writeln!(self.out, "= {read:?}").unwrap();
                }
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
            Ok(Step::Send(session, say, files)) => {
                format!("{session} {:?} {:?} {:?} {files:?}", say.parts, say.run, say.options)
            }
            Ok(Step::Answer(session, approve, digest)) => format!("{session} {digest} {approve:?}"),
            Ok(Step::Fork(session, at)) => format!("fork {session} {at:?}"),
            Ok(Step::Delete(session)) => format!("delete {session}"),
            Ok(Step::CreateRun(new)) => format!("{new:?}"),
            Ok(Step::ControlRun(run, command)) => format!("{run} {command:?}"),
            Ok(Step::AllowServers(folder, digests)) => {
                format!("allow {} {digests:?}", folder.display())
            }
            Ok(Step::DisallowServers(folder, digests)) => {
                format!("disallow {} {digests:?}", folder.display())
            }
            Ok(Step::Speak(text, sentence)) => format!("speak {sentence} of {text:?}"),
            Ok(Step::Transcribe(audio)) => format!("transcribe {audio:?}"),
            Err(Reply { status, error }) => format!("{status} {error}"),
        };
        writeln!(self.out, "= {line}").unwrap();
    }

    fn event(&mut self, line: &str) {
        let at = Time::from_micros(1_735_689_600_000_000 + self.events.cast_signed() * 1_000_000);
        let mut items = Vec::new();
        if let Some(text) = line.strip_prefix("text ") {
            let piece = Delta {
                turn: TurnId::parse("t1").unwrap(),
                step: StepId::parse("p1").unwrap(),
                offset: self.written,
                channel: Channel::Text,
                text: text.into(),
                at,
            };
            self.written += text.len() as u64;
            items.extend(self.reader.take_text(&piece));
        } else {
            let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
            self.events += 1;
            self.reader.take(&Arc::new(Record { seq: self.events, at, event }), &mut items);
        }
        self.show(&items);
    }

    fn show(&mut self, items: &[Item]) {
        for item in items {
            writeln!(self.out, "< {}", encode::item(item)).unwrap();
        }
    }
}
