//! Golden transcripts of what an editor sends and receives, one scenario per file.
//!
//! `>` is a message and `=` its decoded form or the error; `&` is a turn whose message this editor sent;
//! `!` is an event of the journal, text in flight (`! text …`) or output of a call (`! prints c1 …`), and
//! `<` is what the editor is sent for it; `~ live` ends the replay that every transcript begins with.
//! `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Record;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::{Channel, ModelRef};
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::{CallId, Item, ItemReader, SessionId, State, StepId, Time, TurnId, codec};

use super::decode::{self, decode};
use super::encode::{Contents, Encoder, Output};
use super::{diff, elicitation};
use crate::jsonrpc::{self, PeerMessage};

#[test]
fn transcripts() {
    crate::golden::check("src/acp/golden", |script| Transcript::new().replay(script));
}

#[test]
fn no_request_panics() {
    let mut link = decode::Link::default();
    let methods = ["initialize", "session/new", "session/prompt", "session/list", "session/cancel"];
    let others = ["session/set_mode", "session/set_config_option", "$/cancel_request", "x"];
    for method in methods.into_iter().chain(others) {
        for params in [
            "null",
            "[]",
            "{}",
            "\"x\"",
            r#"{"protocolVersion":1,"clientCapabilities":{"fs":{},"session":{"notices":{}}}}"#,
            r#"{"sessionId":"","cwd":"","prompt":[1,{"type":"image","data":"?"}]}"#,
            r#"{"sessionId":"s1","cwd":"/","cursor":"-1","mcpServers":{},"configId":"mode","value":1}"#,
            r#"{"sessionId":"s1","prompt":[{"type":"resource","resource":{"uri":"/","text":"x"}}]}"#,
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
            if let Ok(PeerMessage::Call(call)) = jsonrpc::read_peer(&text) {
                let _ = decode(&mut link, &call);
            }
        }
    }
}

/// One editor and one session.
struct Transcript {
    link: decode::Link,
    encoder: Option<Encoder>,
    records: Vec<Arc<Record>>,
    reader: ItemReader,
    written: u64,
    out: String,
}

impl Transcript {
    fn new() -> Self {
        Self {
            link: decode::Link::default(),
            encoder: None,
            records: Vec::new(),
            reader: ItemReader::default(),
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
                    self.encoder().mark_own_turn(&TurnId::parse(rest).unwrap())
                }
                (Some("! "), Some(rest)) => self.apply(rest),
                (Some("~ "), Some("live")) => {
                    let mut outputs = self.encoder().finish_replay();
                    outputs.extend(self.encoder().go_live());
                    self.show(outputs);
                }
                _ => {}
            }
        }
        self.out
    }

    fn encoder(&mut self) -> &mut Encoder {
        let client = self.link.client.clone().unwrap_or_default();
        self.encoder.get_or_insert_with(|| {
            let mut state = State::new(SessionId::parse("s1").unwrap(), Arc::new(rules()));
            let created = r#"{"session_created":{"workspace":"/w"}}"#;
            let event = codec::decode(codec::VERSION, created.as_bytes()).unwrap();
            state.replay([&Record { seq: 1, at: Time::default(), event }]);
            Encoder::new(&state, client)
        })
    }

    fn receive(&mut self, text: &str) {
        let line = match jsonrpc::read_peer(text) {
            Err(fault) => jsonrpc::response(&fault.id, &Err(fault.error)),
            Ok(PeerMessage::Response { id, outcome }) => format!("answer to {id:?}: {outcome:?}"),
            Ok(PeerMessage::Call(call)) => match decode(&mut self.link, &call) {
                Ok(request) => format!("{request:?}"),
                Err(error) => jsonrpc::response(&call.id.unwrap_or(jsonrpc::Id::Null), &Err(error)),
            },
        };
        writeln!(self.out, "= {line}").unwrap();
    }

    fn apply(&mut self, line: &str) {
        let at = Time::from_micros(1_735_689_600_000_000 + self.records.len() as i64 * 1_000_000);
        let (turn, step) = (TurnId::parse("t1").unwrap(), StepId::parse("p1").unwrap());
        let mut items = Vec::new();
        if let Some(text) = line.strip_prefix("text ") {
            let (offset, channel) = (self.written, Channel::Text);
            self.written += text.len() as u64;
            let piece = Delta { turn, step, offset, channel, text: text.into(), at };
            items.extend(self.reader.take_text(&piece));
        } else if let Some((call, text)) =
            line.strip_prefix("prints ").and_then(|rest| rest.split_once(' '))
        {
            let call = CallId::parse(call).unwrap();
            items.push(Item::Progress { turn, call, text: text.into(), at });
        } else {
            let event = codec::decode(codec::VERSION, line.as_bytes()).expect(line);
            let record = Arc::new(Record { seq: self.records.len() as u64 + 2, at, event });
            self.records.push(Arc::clone(&record));
            self.reader.take(&record, &mut items);
        }
        for item in items {
            let outputs = self.encoder().encode(&item, &Contents::default());
            self.show(outputs);
        }
    }

    fn show(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            let line = match output {
                Output::Update(update) => update.to_string(),
                Output::Ask(open) => {
                    let session = SessionId::parse("s1").unwrap();
                    let diffs = diff::parse(&open.assessment.preview);
                    let shown = |file: &diff::FileDiff<'_>| {
                        let (old, new) = file.texts(None);
                        diff::content(Path::new("/w"), file.path, old.as_deref(), &new)
                    };
                    let diffs = diffs.iter().map(shown).collect();
                    let client = self.encoder().client().clone();
                    match elicitation::params(&open, &client, &session) {
                        Some(params) => format!("elicit {params}"),
                        None => format!("ask {}", open.params(&session, Path::new("/w"), diffs)),
                    }
                }
                Output::QuestionClosed(question) => format!("settled {question}"),
                Output::TurnEnded(turn, Ok(reason)) => format!("ended {turn}: {reason}"),
                Output::TurnEnded(turn, Err(error)) => format!("failed {turn}: {error:?}"),
                Output::Spawned(subagent) => format!("spawned {subagent}"),
                Output::SettingsChanged => "settings".to_owned(),
                Output::Compacted(result) => format!("compacted {result:?}"),
                Output::Reverted(turn, result) => format!("reverted {turn}: {result:?}"),
            };
            writeln!(self.out, "< {line}").unwrap();
        }
    }
}

fn rules() -> Rules {
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
        tools: Vec::new(),
        default_model: ModelRef::parse("fake/fake").unwrap(),
    }
}
