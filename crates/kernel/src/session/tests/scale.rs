//! Tests of the cost of decisions and prompts: proportional to what is new and what is sent, not to
//! the length of the session. Visits are counted, not time.

use std::cell::Cell;

use crate::prompt::assemble;
use crate::session::tests::subagents;

use super::Session;

thread_local! {
    static VISITS: Cell<usize> = const { Cell::new(0) };
}

/// Counts a visit to a message or a call.
pub(crate) fn visited() {
    VISITS.with(|visits| visits.set(visits.get() + 1));
}

fn visits(session: &mut Session, script: &str) -> usize {
    VISITS.with(|visits| visits.set(0));
    for line in super::lines(script) {
        session.play(line).unwrap();
    }
    let _prompt = assemble(&session.state);
    VISITS.with(Cell::get)
}

fn after_turns(turns: usize) -> Session {
    let mut session = Session::after("rules tokens=1000000; create");
    for _ in 0..turns {
        session.play("say hi").unwrap();
        session.play("text ho").unwrap();
        session.play("answer").unwrap();
    }
    session
}

#[test]
fn a_turn_after_a_summary_costs_the_same_however_long_the_session_is() {
    let cost = |turns: usize| {
        let mut session = after_turns(turns);
        session.play("compact_with in short").unwrap();
        visits(&mut session, "say more; text ho; answer; say more")
    };
    assert_eq!(cost(200), cost(20));
}

#[test]
fn the_cost_of_a_prompt_is_proportional_to_its_messages() {
    let cost = |messages: usize| {
        let recalled = vec!["me hi"; messages].join(" | ");
        let mut session = Session::after("create on plain/b");
        visits(&mut session, &format!("import {recalled}; say more"))
    };
    assert!(cost(2_000) < 3 * cost(1_000), "{} and {}", cost(1_000), cost(2_000));
}

#[test]
fn an_answer_with_too_many_calls_is_cheap() {
    let calls: Vec<String> = (0..1_000).map(|n| format!("c{n} look {{\"n\":{n}}}")).collect();
    let mut session = Session::after("create; say hi");
    let cost = visits(&mut session, &format!("answer {}", calls.join(" + ")));
    assert!(cost < 128 * 200, "{cost} visits to calls");
    let open = session.state.open.as_ref().unwrap();
    let done = open.calls().iter().filter(|call| call.done()).count();
    assert_eq!((open.calls().len(), done), (1_000, 1_000 - 128));
    let refused = session.log.iter().filter(|line| line.contains("ask for it again"));
    assert_eq!(refused.count(), done);
}

#[test]
fn the_length_of_a_conversation_is_estimated_once_a_turn() {
    let cost = |rules: &str, looks: &str| {
        let mut session = Session::after(&format!("rules tokens=1000000 {rules}; create"));
        for _ in 0..50 {
            for line in ["say hi", looks, "text ho", "answer"] {
                session.play(line).unwrap();
            }
        }
        visits(&mut session, &format!("say more; {looks}"))
    };
    assert_eq!(cost("context=10", "survey"), cost("context=0", "wake"));
}

#[test]
fn another_subagent_costs_the_same_however_many_there_were() {
    let cost = |turns: usize| {
        let mut session = subagents::after_subagents(turns);
        VISITS.with(|visits| visits.set(0));
        subagents::spawn(&mut session, "last", None);
        VISITS.with(Cell::get)
    };
    assert_eq!(cost(100), cost(10));
}
