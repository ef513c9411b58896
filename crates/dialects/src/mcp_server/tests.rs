//! Golden transcripts of a client's calls and the reports about a session's events.
//!
//! `>` is a call and `=` its decoded form or the error; `!` is an event of the journal and `<` is the
//! report about the last turn after it. `UPDATE_GOLDEN=1` rewrites the `=` and `<` lines.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Record;
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::{Cursor, SessionId, State, Time, codec};
use serde_json::{Value, json};

use super::decode::decode;
use super::encode::{report, transcript};

#[test]
fn transcripts() {
    crate::golden::check("src/mcp_server/golden", replay);
}

fn rules() -> Rules {
    Rules {
        approval: ApprovalPolicy {
            rules: Vec::new(),
            kinds: Vec::new(),
            tools: Vec::new(),
            on_deny: OnDeny::Continue,
            expires: None,
        },
        review: ReviewMode::Off,
        context_tokens: 0,
        save_memory: false,
        verify: VerifyPolicy { auto: false, tool: "verify".into(), attempts: 1 },
        limits: Limits {
            steps: 10,
            tokens: 1000,
            time: Duration::from_secs(10),
            repeats: 3,
            compact_at_percent: 80,
            assumed_window: 1000,
        },
        recovery: Recovery::Continue,
        client_grace: Duration::from_secs(1),
        subagents: SubagentLimits::default(),
        tools: Vec::new(),
        default_model: ModelRef { provider: "fake".into(), model: "fake".into() },
    }
}

fn replay(script: &str) -> String {
    let mut state = State::new(SessionId::parse("s1").unwrap(), Arc::new(rules()));
    let mut out = String::new();
    for line in script.lines().filter(|line| !matches!(line.get(..2), Some("= " | "< "))) {
        writeln!(out, "{line}").unwrap();
        match line.get(..2) {
            Some("> ") => {
                let call: Value = serde_json::from_str(&line[2..]).unwrap();
                let name = call["name"].as_str().unwrap();
                writeln!(out, "= {:?}", decode(name, call["arguments"].clone())).unwrap();
            }
            Some("! ") => {
                let event = codec::decode(codec::VERSION, &line.as_bytes()[2..]).expect(line);
                let seq = state.head + 1;
                let at = Time::from_micros(1_735_689_600_000_000);
                state.replay([&Record { seq, at, event }]);
                let turn = state.turns.last().map(|turn| turn.id.clone());
                let report = report(&state, turn.as_ref(), String::new(), Cursor::after(seq));
                writeln!(out, "< {}", json!(report)).unwrap();
            }
            _ => {}
        }
    }
    out
}

#[test]
fn no_arguments_panic() {
    let invalid =
        [Value::Null, json!([]), json!({}), json!({ "session": 7 }), json!({ "session": "../x" })];
    for name in ["run", "continue", "status", "answer", "cancel", "sessions", "", "x"] {
        for arguments in &invalid {
            let _ = decode(name, arguments.clone());
        }
    }
    let negative_wait = json!({ "prompt": "x", "workspace": "/", "wait_seconds": -1 });
    assert!(decode("run", negative_wait).is_err());
}

#[test]
fn an_empty_session_has_a_transcript() {
    let state = State::new(SessionId::parse("s1").unwrap(), Arc::new(rules()));
    assert_eq!(transcript(&state), "# s1\n");
}
