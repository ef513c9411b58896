//! Which turns a client is told again.

use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Event, NewSession, Record};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};

use super::*;

fn at(seconds: i64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

fn client(agent: Option<&str>) -> Client {
    Client { user: "u".into(), agent: agent.map(Into::into) }
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

/// A session with these events, a second apart from each other.
fn session(events: &[&str]) -> State {
    let mut state = State::new(SessionId::named("s".into()), Arc::new(rules()));
    let created = Event::SessionCreated(NewSession::default());
    let told = events.iter().map(|line| codec::decode(codec::VERSION, line.as_bytes()).unwrap());
    for (seq, event) in [created].into_iter().chain(told).enumerate() {
        state.replay(&[Record { seq: seq as u64 + 1, at: at(seq as i64), event }]);
    }
    state
}

const ASKED: &str = r#"{"message_added":{"message":"m1","turn":"t1","role":"user","parts":[],"options":{"key":"q1","more":{"aside":{"agent_id":"a"}}},"nth":1}}"#;
const BEGUN: &str = r#"{"turn_started":{"turn":"t1","attempt":1,"options":{"key":"q1","more":{"aside":{"agent_id":"a"}}}}}"#;
const OVER: &str =
    r#"{"turn_completed":{"turn":"t1","usage":{"input":0,"output":0},"verified":null}}"#;

#[test]
fn a_turn_under_way_is_told_to_the_agent_that_asked() {
    let (seen, state) = (Acknowledged::default(), session(&[ASKED, BEGUN]));
    assert!(seen.is_awaited(&client(Some("a")), &state, at(5)));
    assert!(!seen.is_awaited(&client(Some("b")), &state, at(5)));
    // Another one that speaks of the conversation is told of it, and is from then on.
    let other = client(None);
    assert_eq!(seen.first_unseen(&other, &state, at(5)).map(|turn| turn.begins), Some(2));
    seen.follow((&other, &state.id), "c", (at(5), at(5)));
    assert!(seen.is_awaited(&other, &state, at(6)));
    assert_eq!(seen.sessions(&other), [("c".to_owned(), state.id.clone())]);
}

#[test]
fn an_end_is_told_again_until_it_was_seen_and_not_for_ever() {
    let (seen, state) = (Acknowledged::default(), session(&[ASKED, BEGUN, OVER]));
    let (asker, other) = (client(Some("a")), client(None));
    // Nothing is known of what clients saw, as after a restart.
    assert!(seen.is_awaited(&asker, &state, at(5)) && !seen.is_awaited(&other, &state, at(5)));
    assert!(!seen.is_awaited(&asker, &state, at(3).after(REDELIVERY_WINDOW)));
    seen.follow((&asker, &state.id), "c", (Time::default(), at(5)));
    assert!(seen.is_awaited(&asker, &state, at(5)));
    seen.note(&asker, &state.id, at(3));
    assert!(!seen.is_awaited(&asker, &state, at(5)));
    assert!(seen.first_unseen(&asker, &state, at(5)).is_none());
}
