//! Tests of turn options: queueing, approval modes and turns without tools.

use expect_test::expect;
use serde_json::{Value, json};

use crate::command::{Command, NewMessage, TurnStart};
use crate::event::{RareOptions, TurnOptions};
use crate::message::{Part, Role};
use crate::prompt::assemble;

use super::{Session, check};

// The journal wraps a client's data in a few more levels.
#[test]
fn deeply_nested_data_of_a_message_can_be_read_back() {
    for levels in [1, 100, 118, 122, 125, 127, 1000] {
        let deep: Value = (0..levels).fold(json!("core"), |value, _| json!([value]));
        let front_end_data = json!({ "deep": deep, "flat": 1 });
        let more = RareOptions { front_end_data, ..RareOptions::default() };
        let options = TurnOptions { more: Some(Box::new(more)), ..TurnOptions::default() };
        let parts = vec![Part::Text("hi".into())];
        let mut session = Session::after("create");
        session
            .send(Command::AddMessage(Box::new(NewMessage::new(
                Role::User,
                parts,
                TurnStart::Now,
                options,
            ))))
            .unwrap();
        session.check_replay();
        let options = &session.state.open.as_ref().unwrap().options;
        assert_eq!(options.front_end_data("flat"), Some(&json!(1)));
    }
}

#[test]
fn turns_are_queued() {
    check(expect![[r#"
        create > queue one
            t1 User: "one"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        create; say one > queue two; queue three; answer; answer
            t2 User: "two"
            t3 User: "three"
            s1 answered
            t1 COMPLETED
            t2 starts, attempt 1
            s2 asks fake/a
            s2 answered
            t2 COMPLETED
            t3 starts, attempt 1
            s3 asks fake/a
            -> model s3, wake +600
        create; say one; queue two > cancel_turn t2; answer
            t2 CANCELLED
            s1 answered
            t1 COMPLETED
        create; say one; queue two > cancel_turn t1
            t1 stops: cancelled
            s1 cut: canceled
            t1 CANCELLED
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        create; say one; answer > cancel_turn t1; cancel_turn t9
            refused: turn not found: t9
        create; say one; queue two > cancel
            t1 stops: cancelled
            s1 cut: canceled
            t1 CANCELLED
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        create; say one; queue two > recover
            t1 resumed
            -> model s1, wake +600
    "#]]);
}

#[test]
fn strict_mode_requires_more_approvals() {
    check(expect![[r#"
        create; say strictly > answer c1 shell {} + c2 look {}
            s1 answered c1=shell{} c2=look{}
            -> assess c1, wake +600
        create; say strictly; answer c1 shell {} > assess c1
            c1 asked
        rules ask=exec; create; say quickly; answer c1 shell {} > assess c1; +5; wake
            c1 asked until +5
            c1 Deny by Clock: nobody answered in time
            c1 Denied: approval denied: nobody answered in time
            s2 asks fake/a
            -> model s2, wake +605
    "#]]);
}

#[test]
fn waived_mode_requires_fewer_approvals() {
    check(expect![[r#"
        rules ask=exec; create; say freely; answer c1 shell {} > assess c1
            c1 starts at Daemon
            -> run c1, wake +600
        rules ask=exec; create; say freely; answer c1 shell {} > assess c1 critical
            c1 asked
        rules review=request; create; say freely; answer c1 edit {} > assess c1
            c1 asked
    "#]]);
}

#[test]
fn tools_can_be_withheld() {
    check(expect![[r#"
        create; say talk > answer c1 look {}
            s1 answered c1=look{}
            c1 Denied: tools are off for this turn
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn models_read_imported_messages() {
    check(expect![[r#"
        create > import me hi | model hello; say again
            t1 User: "hi"
            t2 Assistant: "hello"
            t3 User: "again"
            t3 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
    "#]]);
}

#[test]
fn an_open_step_keeps_the_tools_of_its_model() {
    let mut session = Session::after("create; say hi; switch plain/b");
    session.play("wake").unwrap();
    let prompt = assemble(&session.state);
    assert_eq!(prompt.model.to_string(), "fake/a");
    assert!(!prompt.tools.is_empty());
}

#[test]
fn an_unattended_turn_denies_approvals() {
    check(expect![[r#"
        rules ask=exec; create; say unattended; answer c1 shell {} > assess c1
            c1 Denied: this call needs approval, and nobody can be asked for it here
            s2 asks fake/a
            -> model s2, wake +600
        rules ask=exec on_deny=fail; create; say unattended; answer c1 shell {} > assess c1
            c1 Denied: this call needs approval, and nobody can be asked for it here
            s2 asks fake/a
            -> model s2, wake +600
        rules review=request; create; say unattended; answer c1 edit {} > assess c1
            c1 Denied: this call needs approval, and nobody can be asked for it here
            s2 asks fake/a
            -> model s2, wake +600
        create; say unattended > answer c1 shell {}
            s1 answered c1=shell{}
            c1 starts at Daemon
            -> run c1, wake +600
    "#]]);
}
