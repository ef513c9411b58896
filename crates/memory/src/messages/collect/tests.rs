//! Tests of collecting messages from events.

use quintet_kernel::message::Part;
use quintet_kernel::model::{FinishReason, Usage};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, MessageId, StepId, Time, TurnId};

use super::*;

fn turn() -> TurnId {
    TurnId::parse("t1").unwrap()
}

fn step(name: &str) -> StepId {
    StepId::parse(name).unwrap()
}

fn message(name: &str) -> MessageId {
    MessageId::parse(name).unwrap()
}

fn user_message(text: &str) -> Event {
    Event::MessageAdded {
        message: message("m1"),
        turn: turn(),
        role: Role::User,
        parts: vec![Part::Context("elsewhere".into()), Part::Text(text.into())],
        options: Default::default(),
        nth: 0,
    }
}

fn text(of: &str, channel: Channel, text: &str) -> Event {
    let (step, text) = (step(of), text.to_owned());
    Event::TextAppended { turn: turn(), step, offset: 0, channel, text, pieces: Vec::new() }
}

fn completed(of: &str) -> Event {
    Event::ModelCompleted {
        turn: turn(),
        step: step(of),
        message: Some(message("m2")),
        finish: FinishReason::Stop,
        calls: Vec::new(),
        usage: Usage::default(),
        sealed: Vec::new(),
        by: None,
    }
}

fn called(outcome: Outcome) -> Event {
    let call = CallId::parse("c1").unwrap();
    let (tool, message) = ("shell".to_owned(), message("m3"));
    Event::CallCompleted { turn: turn(), call, tool, message, outcome }
}

/// The messages of events as `seq role text`, and the position after each event.
fn collected(events: Vec<Event>) -> (Vec<String>, Vec<Seq>) {
    let mut collector = Collector::new(0);
    let (mut messages, mut positions) = (Vec::new(), Vec::new());
    for (event, seq) in events.into_iter().zip(1..) {
        let found = collector.take(&Record { seq, at: Time::default(), event });
        messages.extend(found.map(|m| format!("{} {:?} {}", m.seq, m.role, m.text)));
        positions.push(collector.position());
        assert_eq!(collector.read(), seq);
    }
    (messages, positions)
}

#[test]
fn a_turn_has_a_message_of_each_author() {
    let events = vec![
        user_message(" hello "),
        text("s1", Channel::Thought, "hm"),
        text("s1", Channel::Text, "good "),
        text("s1", Channel::Text, "day"),
        completed("s1"),
        called(Outcome::success("12 files")),
        called(Outcome::failure("no such file")),
        completed("s2"),
    ];
    let (messages, positions) = collected(events);
    assert_eq!(
        messages,
        ["1 User hello", "5 Assistant good day", "6 Tool 12 files", "7 Tool no such file"]
    );
    // An unfinished answer is read again from its beginning.
    assert_eq!(positions, [1, 2, 2, 2, 5, 6, 7, 8]);
}

#[test]
fn the_output_of_a_command_is_text() {
    let report = r#"{"cmd":"cat m","exit_code":0,"stderr":"","stdout":"aaa\nzorse\tccc\n"}"#;
    let list = r#"[{"cmd":"make","stdout":"ok"}]"#;
    let results = [report, list, "{not json"].map(|text| called(Outcome::success(text)));
    let (messages, _) = collected(results.into());
    assert_eq!(messages[0], "1 Tool cat m\n\naaa\nzorse\tccc");
    assert_eq!(messages[1..], ["2 Tool make\nok", "3 Tool {not json"]);
}

#[test]
fn interrupted_answers_are_kept_and_long_texts_shortened() {
    let broken = Event::StepInterrupted {
        turn: turn(),
        step: step("s1"),
        message: Some(message("m2")),
        reason: "gone".into(),
        context_window: None,
    };
    let long = "é".repeat(MESSAGE_LIMIT);
    let (messages, _) = collected(vec![
        text("s1", Channel::Text, "half"),
        broken,
        text("s2", Channel::Text, &long),
        text("s2", Channel::Text, &long),
        completed("s2"),
        called(Outcome::success(long.clone())),
    ]);
    assert_eq!(messages[0], "2 Assistant half");
    assert_eq!(messages[1].len(), "5 Assistant ".len() + MESSAGE_LIMIT);
    assert_eq!(messages[2].len(), "6 Tool ".len() + OUTPUT_LIMIT);
}
