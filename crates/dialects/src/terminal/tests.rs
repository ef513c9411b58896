//! Golden transcripts of what a client sends and receives, one scenario per file.
//!
//! `>` is a message and `=` its decoded form or the error; `&` is a turn of this client (`& t1 whole`
//! without streaming); `!` is an event of the journal, text in flight (`! text …`) or progress of a call
//! (`! says c1 …`), and `<` is what the client is sent; after `!behind` the client does not keep up; `~` is
//! a client that reconnects with this many bytes. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::{Channel, ModelRef};
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use quintet_kernel::{CallId, Item, ItemReader, SessionId, State, StepId, Time, TurnId, codec};
use serde_json::json;

use super::decode::{self, decode};
use super::encode::{ClientPace, Link};
use super::screen::ClientKind;
use crate::jsonrpc::{self, Id, Incoming, Received};

#[test]
fn transcripts() {
    crate::golden::check("src/terminal/golden", |script| Transcript::new().replay(script));
}

#[test]
fn no_request_panics() {
    let mut link = decode::Link::default();
    for ready in [false, true] {
        for method in
            ["initialize", "agent.query", "tool.approve", "session.load", "context.update", "x"]
        {
            for params in [
                "null",
                "[]",
                "{}",
                "\"x\"",
                "{\"message\":{},\"path\":\"\u{e9}\"}",
                "{\"query_id\":\"q-\"}",
            ] {
                let text =
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                if let Ok(Incoming::One(Ok(call))) = jsonrpc::read(&text) {
                    let _ = decode(&mut link, &call);
                }
            }
        }
        if !ready {
            let start = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1.9.0"}}"#;
            let Ok(Incoming::One(Ok(call))) = jsonrpc::read(start) else { panic!("a request") };
            decode(&mut link, &call).unwrap();
        }
    }
}

fn rules() -> Rules {
    let tool = |name: &str, kind| {
        let (name, description, schema) = (name.into(), "Does things. Well.".into(), json!({}));
        Arc::new(ToolSpec {
            name,
            description,
            schema,
            kind,
            placement: Placement::Daemon,
            strict: false,
        })
    };
    let (rules, kinds, tools) = (Vec::new(), Vec::new(), Vec::new());
    Rules {
        approval: ApprovalPolicy { rules, kinds, tools, on_deny: OnDeny::Continue, expires: None },
        review: ReviewMode::Off,
        context_tokens: 0,
        save_memory: false,
        verify: VerifyPolicy { auto: false, tool: "verify".into(), attempts: 1 },
        limits: Limits {
            steps: 1,
            tokens: 1,
            time: Duration::from_secs(1),
            repeats: 1,
            compact_at_percent: 80,
            assumed_window: 128_000,
        },
        recovery: Recovery::Continue,
        client_grace: Duration::from_secs(30),
        subagents: SubagentLimits::default(),
        tools: vec![tool("write_file", ToolKind::Write), tool("shell", ToolKind::Exec)],
        default_model: ModelRef::parse("fake/fake").unwrap(),
    }
}

/// One client and one session.
struct Transcript {
    client: decode::Link,
    link: Link,
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    pace: ClientPace,
    written: u64,
    out: String,
}

impl Transcript {
    fn new() -> Self {
        Self {
            client: decode::Link::default(),
            link: Link::new(&state(&[]), 0, ClientKind::Any),
            records: Vec::new(),
            reader: ItemReader::default(),
            pace: ClientPace::Current,
            written: 0,
            out: String::new(),
        }
    }

    fn replay(mut self, script: &str) -> String {
        for line in script.lines() {
            if matches!(line.get(..2), Some("= " | "< ")) {
                continue;
            }
            writeln!(self.out, "{line}").unwrap();
            match (line.get(..2), line.get(2..)) {
                (Some("> "), Some(rest)) => self.receive(rest),
                (Some("& "), Some(rest)) => {
                    let turn = TurnId::parse(rest.trim_end_matches(" whole")).unwrap();
                    self.link.track_query(&turn, !rest.ends_with("whole"));
                }
                (Some("! "), Some(rest)) => self.apply(rest),
                (Some("~ "), Some(rest)) => self.reconnect(rest.parse().unwrap()),
                (Some("!b"), _) => self.pace = ClientPace::Behind,
                _ => {}
            }
        }
        self.out
    }

    fn receive(&mut self, text: &str) {
        let lines: Vec<String> = match jsonrpc::read(text) {
            Err(error) => vec![jsonrpc::response(&Id::Null, &Err(error))],
            Ok(Incoming::One(received)) => vec![self.describe(received)],
            Ok(Incoming::Batch(all)) => all.into_iter().map(|one| self.describe(one)).collect(),
        };
        for line in lines {
            writeln!(self.out, "= {line}").unwrap();
        }
    }

    fn describe(&mut self, received: Received) -> String {
        match received {
            Err(fault) => jsonrpc::response(&fault.id, &Err(fault.error)),
            Ok(call) => match decode(&mut self.client, &call) {
                Ok(request) => format!("{request:?}"),
                Err(error) => jsonrpc::response(&call.id.unwrap_or(Id::Null), &Err(error)),
            },
        }
    }

    fn apply(&mut self, line: &str) {
        let at = Time::from_micros(1_735_689_600_000_000 + self.records.len() as i64 * 1_000_000);
        let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
        if let Some(text) = line.strip_prefix("text ") {
            let text = text.replace("\\n", "\n");
            let (offset, channel) = (self.written, Channel::Text);
            self.written += text.len() as u64;
            let piece = Delta { turn, step, offset, channel, text: text.into(), at };
            let item = self.reader.take_text(&piece);
            return self.show(item.as_slice());
        }
        if let Some((call, text)) = line.strip_prefix("says ").and_then(|rest| rest.split_once(' '))
        {
            let call = CallId::parse(call).unwrap();
            return self.show(&[Item::Progress { turn, call, text: text.into(), at }]);
        }
        let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
        let record = Arc::new(Record { seq: self.records.len() as u64 + 1, at, event });
        self.records.push(Arc::clone(&record));
        let mut items = Vec::new();
        self.reader.take(&record, &mut items);
        self.show(&items);
    }

    fn reconnect(&mut self, received: u64) {
        let client_kind =
            self.client.client.as_ref().map(decode::Client::client_kind).unwrap_or_default();
        self.link = Link::new(&state(&self.records), received, client_kind);
        self.reader = ItemReader::default();
        let mut items = Vec::new();
        self.records.iter().for_each(|record| self.reader.take(record, &mut items));
        self.show(&items);
    }

    fn show(&mut self, items: &[Item]) {
        for message in self.link.encode(items, self.pace) {
            writeln!(self.out, "< {message}").unwrap();
        }
    }
}

fn state(records: &[Arc<Record>]) -> State {
    let mut state = State::new(SessionId::parse("s1").unwrap(), Arc::new(rules()));
    state.replay(records.iter().map(|record| &**record));
    state
}
