//! Tests of creating and closing sessions, messages, turns, labels, models and files.

use expect_test::expect;

use super::{Session, check};

#[test]
fn a_session_is_created_once() {
    check(expect![[r#"
        > create; create
            created in /work
            refused: session already exists: sess
        > create on else/x
            refused: unknown model: else/x; `quintet models` lists those that can be used
        > say hi
            refused: session not found: sess
        > wake
            refused: session not found: sess
    "#]]);
}

#[test]
fn a_message_is_answered_now_or_later() {
    check(expect![[r#"
        create > say hi
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        create > later hi
            t1 User: "hi"
        create; later hi > start t1
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        create > say
            refused: message has no parts
    "#]]);
}

#[test]
fn one_turn_at_a_time() {
    check(expect![[r#"
        create; say hi > say again; later again; start t2; start t1; compact; close
            refused: session already running: sess
            t2 User: "again"
            refused: session already running: sess
            refused: session already running: sess
            refused: session already running: sess
            refused: session already running: sess
            -> model s1, wake +600
        create; later one; later two; start t1; answer > start t2
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn an_unsuccessful_turn_can_be_retried() {
    check(expect![[r#"
        create; say hi; fails rejected > start t1
            t1 starts, attempt 2
            s2 asks fake/a
            -> model s2, wake +600
        create; say hi; cancel > start t1; fails stream_cut; start t1
            t1 starts, attempt 2
            s2 asks fake/a
            s2 cut: stream_cut happened
            t1 stops: stream_cut: stream_cut happened
            t1 FAILED stream_cut: stream_cut happened
            t1 starts, attempt 3
            s3 asks fake/a
            -> model s3, wake +600
        create; say hi; answer > start t1
            refused: turn turn_20250101t000000z_h4ql634h42wveh3k has succeeded and cannot be retried
        create; say hi; answer > start t9
            refused: turn not found: t9
    "#]]);
}

#[test]
fn output_is_accepted_only_where_the_last_ended() {
    check(expect![[r#"
        let given = create; say hi; text Hello
        given > text , you; thought hm; text !
            s1 Text@5 ", you"
            s1 Thought@10 "hm"
            s1 Text@12 "!"
            -> model s1, wake +600
        given > text@4 x; text@6 x; text@0 Hello
            (nothing)
            -> model s1, wake +600
        given > text
            (nothing)
            -> model s1, wake +600
        given > retry 429
            s1 retries #2: 429
            -> model s1, wake +600
    "#]]);
}

#[test]
fn an_answer_without_calls_ends_the_turn() {
    check(expect![[r#"
        create; say hi > text Hello; answer
            s1 Text@0 "Hello"
            s1 answered
            t1 COMPLETED
        create; say hi > answer
            s1 answered
            t1 COMPLETED
    "#]]);
}

#[test]
fn reports_of_an_old_step_are_dropped() {
    check(expect![[r#"
        let given = create; say hi; answer; say again
        given > s1 text x; s1 answer; s1 fails stream_cut; s1 retry x; s9 answer
            (nothing)
            -> model s2, wake +600
        create; say hi; answer > s1 text x; s1 answer; s1 fails stream_cut
            (nothing)
    "#]]);
}

#[test]
fn labels_are_set_and_removed() {
    check(expect![[r#"
        create > label a=1; label a=1; label a=2; unlabel a; unlabel a
            label a=1
            label a=2
            label a removed
    "#]]);
}

#[test]
fn a_switched_model_is_used_from_the_next_step() {
    check(expect![[r#"
        create > switch plain/b; switch plain/b; say hi
            model plain/b
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks plain/b
            -> model s1, wake +600
        create > switch else/b
            refused: unknown model: else/b; `quintet models` lists those that can be used
        create on plain/b > say hi
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks plain/b
            -> model s1, wake +600
        create; switch plain/b > say hi on fake/c; answer; say hi
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks fake/c
            s1 answered
            t1 COMPLETED
            t2 User: "hi"
            t2 starts, attempt 1
            s2 asks plain/b
            -> model s2, wake +600
        create > say hi on else/c
            refused: unknown model: else/c; `quintet models` lists those that can be used
    "#]]);
}

#[test]
fn a_retried_turn_keeps_its_model() {
    check(expect![[r#"
        create; say hi on plain/c; fails stream_cut > start t1
            t1 starts, attempt 2
            s2 asks plain/c
            -> model s2, wake +600
    "#]]);
}

#[test]
fn a_later_turn_keeps_its_options() {
    check(expect![[r#"
        create; later hi on plain/c > start t1
            t1 starts, attempt 1
            s1 asks plain/c
            -> model s1, wake +600
        create > later hi on else/c
            refused: unknown model: else/c; `quintet models` lists those that can be used
    "#]]);
}

#[test]
fn a_removed_model_is_not_called_again() {
    let mut session = Session::after("create; say hi on plain/c; fails stream_cut");
    session.forget_provider("plain");
    assert_eq!(
        session.play("start t1").unwrap_err().to_string(),
        "unknown model: plain/c; `quintet models` lists those that can be used"
    );
}

#[test]
fn a_closed_session_reopens_with_the_next_turn() {
    check(expect![[r#"
        create > close done; close
            closed: done
        create; close > say hi
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
    "#]]);
    let status = |script| Session::after(script).state.status;
    use crate::Status::*;
    assert_eq!(status("create; close"), Completed);
    assert_eq!(status("create; close; later hi"), Completed);
    assert_eq!(status("create; close; say hi"), Active);
    assert_eq!(status("create; say hi; fails stream_cut"), Failed);
    assert_eq!(status("create; say hi; cancel"), Cancelled);
    assert_eq!(status("create; say hi; cancel; start t1; answer"), Active);
}

#[test]
fn a_file_gets_a_safe_and_unique_name() {
    check(expect![[r#"
        let given = create
        given > attach ../../etc/passwd.txt text/plain
            attached "passwd.txt" text/plain
        given > attach C:\dir\a.png image/png
            attached "a.png" image/png
        given > attach README text/plain; attach .env text/plain; attach a. x/y
            attached "README.bin" text/plain
            attached ".env.bin" text/plain
            attached "a..bin" x/y
    "#]]);
    let session = Session::after("create; attach a.png image/png; attach b/a.png image/png");
    let names: Vec<&str> = session.state.attachments.iter().map(|file| &*file.name).collect();
    assert_eq!(names[0], "a.png");
    assert!(names[1].starts_with("att_2025") && names[1].ends_with(".png"), "{names:?}");
}

#[test]
fn a_file_without_a_usable_name_is_refused() {
    for bad in [".", "..", "a/..", "dir/", "aNULb.txt", "aNUL/b.txt", "a\tb", &"x".repeat(201)] {
        let refusal = Session::after("create").play(&format!("attach {bad} x/y")).unwrap_err();
        assert_eq!(refusal.to_string(), "invalid attachment name", "{bad:?}");
    }
}

#[test]
fn media_need_a_model_that_supports_them_and_text_does_not() {
    check(expect![[r#"
        let given = create; attach a.png image/png; attach a.wav audio/wav; attach a.md text/markdown
        given > say see with image:a.png
            t1 User: "see" image:a.png
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        given > say see with image:a.png on plain/b
            refused: model plain/b does not take image parts
        given > say see with image:a.png on blind/b
            t1 User: "see" image:a.png
            t1 starts, attempt 1
            s1 asks blind/b
            -> model s1, wake +600
        given > say hear with audio:a.wav on blind/b
            refused: model blind/b does not take audio parts
        given > say hear with audio:a.wav
            refused: model fake/a does not take audio parts
        given > later hear with audio:a.wav
            refused: model fake/a does not take audio parts
        given > say read with file:a.md on plain/b
            t1 User: "read" file:a.md
            t1 starts, attempt 1
            s1 asks plain/b
            -> model s1, wake +600
        given > say see with image:b.png
            refused: attachment not found: b.png
    "#]]);
}
