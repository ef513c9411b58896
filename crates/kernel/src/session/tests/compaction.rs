//! Tests of summaries: automatic ones and those that clients request.

use expect_test::expect;

use crate::prompt::assemble;
use crate::prompt::estimate_tokens;

use super::{Session, check};

#[test]
fn an_overflow_leads_to_one_summary() {
    check(expect![[r#"
        let talk = create; say one; text 1; answer; say two
        talk > fails context_overflow
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            -> summarize m2, wake +600
        talk > fails context_overflow; summary m2 short
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            compacted 2 up to m2: short
            s3 asks fake/a
            -> model s3, wake +600
        talk > fails context_overflow; summary m2 short; fails context_overflow
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            compacted 2 up to m2: short
            s3 asks fake/a
            s3 cut: context_overflow happened
            t2 stops: context_overflow: context_overflow happened
            t2 FAILED context_overflow: context_overflow happened
        talk > fails context_overflow; unsummarized no
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            not compacted: no
            compacting up to m2, 12 tokens
            compacted 2 up to m2: No summary could be written. In short, this was said and done:/- user: one/- assistant: 1
            s3 asks fake/a
            -> model s3, wake +600
        talk > fails context_overflow; unsummarized no; fails context_overflow
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            not compacted: no
            compacting up to m2, 12 tokens
            compacted 2 up to m2: No summary could be written. In short, this was said and done:/- user: one/- assistant: 1
            s3 asks fake/a
            s3 cut: context_overflow happened
            t2 stops: context_overflow: context_overflow happened
            t2 FAILED context_overflow: context_overflow happened
        create; say one > fails context_overflow
            s1 cut: context_overflow happened
            t1 stops: context_overflow: context_overflow happened
            t1 FAILED context_overflow: context_overflow happened
    "#]]);
}

#[test]
fn a_full_window_is_summarized_before_the_next_step() {
    check(expect![[r#"
        let given = create; say one; text 1; answer [790/10]
        given > say two
            t2 User: "two"
            t2 starts, attempt 1
            compacting up to m2, 801 tokens
            -> summarize m2, wake +600
        given > say two; summary m2 short; answer a look; done a
            t2 User: "two"
            t2 starts, attempt 1
            compacting up to m2, 801 tokens
            compacted 2 up to m2: short
            s2 asks fake/a
            s2 answered a=look{}
            a starts at Daemon
            a Succeeded:
            s3 asks fake/a
            -> model s3, wake +600
        create; say one; text 1; answer [788/10] > say two
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        create on plain/b; say one; text 1; answer [9999/1] > say two
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks plain/b
            -> model s2, wake +600
        given > say two; unsummarized no; answer [900/1] a look; done a
            t2 User: "two"
            t2 starts, attempt 1
            compacting up to m2, 801 tokens
            not compacted: no
            s2 asks fake/a
            s2 answered a=look{}
            a starts at Daemon
            a Succeeded:
            s3 asks fake/a
            -> model s3, wake +600
    "#]]);
}

#[test]
fn a_client_may_write_the_summary() {
    check(expect![[r#"
        let given = create; say one; text 1; answer
        given > compact_with we met; compact
            compacting up to m2, 11 tokens
            compacted 2 up to m2: we met
            refused: there is nothing to compact
        given > compact_with; compact_with we met; compact_with again
            refused: message has no parts
            compacting up to m2, 11 tokens
            compacted 2 up to m2: we met
            refused: there is nothing to compact
        given > say two; compact_with we met
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            refused: session already running: sess
            -> model s2, wake +600
        given > compact; compact_with we met
            compacting up to m2, 11 tokens
            refused: session already running: sess
            -> summarize m2
        create > compact_with we met
            refused: there is nothing to compact
    "#]]);
}

#[test]
fn a_client_may_request_a_summary() {
    check(expect![[r#"
        let given = create; say one; text 1; answer
        given > compact
            compacting up to m2, 11 tokens
            -> summarize m2
        given > compact; say two; compact; close
            compacting up to m2, 11 tokens
            refused: session already running: sess
            refused: session already running: sess
            refused: session already running: sess
            -> summarize m2
        given > compact; summary m2 short; compact
            compacting up to m2, 11 tokens
            compacted 2 up to m2: short
            refused: there is nothing to compact
        given > compact; unsummarized no; unsummarized again
            compacting up to m2, 11 tokens
            not compacted: no
        given > compact; cancel; summary m2 late
            compacting up to m2, 11 tokens
            not compacted: canceled
        given > compact; summary m1 of something else
            compacting up to m2, 11 tokens
            -> summarize m2
        given > summary m2 unasked; unsummarized no
            (nothing)
        given > compact; recover
            compacting up to m2, 11 tokens
            -> summarize m2
        create > compact
            refused: there is nothing to compact
    "#]]);
}

#[test]
fn a_summary_in_progress_ends_with_its_turn() {
    check(expect![[r#"
        let talk = create; say one; text 1; answer; say two
        talk > fails context_overflow; cancel; summary m2 late
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            t2 stops: cancelled
            not compacted: the turn is over
            t2 CANCELLED
        talk > fails context_overflow; +600; wake
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            t2 stops: time_limit: the turn took too long
            not compacted: the turn is over
            t2 FAILED time_limit: the turn took too long
    "#]]);
}

// A summary that ended at a message which models do not read would never be used.
#[test]
fn a_summary_ends_at_a_message_that_models_read() {
    check(expect![[r#"
        let cut = create; say one; text 1; cancel
        cut > compact
            compacting up to m1, 0 tokens
            -> summarize m1
        cut > say two; fails context_overflow
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            s2 cut: context_overflow happened
            compacting up to m1, 25 tokens
            -> summarize m1, wake +600
        create; say one; text 1; answer; system be brief > compact
            compacting up to m2, 11 tokens
            -> summarize m2
        create; system be brief > compact
            refused: there is nothing to compact
    "#]]);
}

#[test]
fn facts_of_a_summary_are_saved_once() {
    check(expect![[r#"
        let talk = rules save_memory; create; say one; text 1; answer; compact
        talk > summary m2 short/REMEMBER:/- likes tabs/- in Bern
            compacted 2 up to m2: short +likes tabs +in Bern
            -> save m2
        talk > summary m2 short/REMEMBER:/- likes tabs; saved m2 memory/a.md; saved m2 memory/b.md
            compacted 2 up to m2: short +likes tabs
            m2 saved to memory/a.md
        talk > summary m2 short/REMEMBER:/- likes tabs; not_saved m2 no room
            compacted 2 up to m2: short +likes tabs
            m2 not saved: no room
        talk > summary m2 short/REMEMBER:/- likes tabs; recover
            compacted 2 up to m2: short +likes tabs
            -> save m2
        talk > summary m2 short/REMEMBER:/- likes tabs; say two; cancel; compact; summary m3 shorter/REMEMBER:/- likes tea
            compacted 2 up to m2: short +likes tabs
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            t2 stops: cancelled
            s2 cut: canceled
            t2 CANCELLED
            compacting up to m3, 0 tokens
            compacted 3 up to m3: shorter +likes tea
            -> save m2, save m3
        talk > summary m2 short/REMEMBER: none; saved m2 memory/a.md
            compacted 2 up to m2: short
        create; say one; text 1; answer; compact > summary m2 short/REMEMBER:/- likes tabs
            compacted 2 up to m2: short/REMEMBER:/- likes tabs
    "#]]);
}

#[test]
fn a_turn_continues_while_facts_are_saved() {
    check(expect![[r#"
        let talk = rules save_memory; create; say one; text 1; answer; say two
        talk > fails context_overflow; summary m2 short/REMEMBER:/- likes tabs
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            compacted 2 up to m2: short +likes tabs
            s3 asks fake/a
            -> save m2, model s3, wake +600
        talk > fails context_overflow; summary m2 short/REMEMBER:/- likes tabs; saved m2 memory/a.md; text 2; answer
            s2 cut: context_overflow happened
            compacting up to m2, 12 tokens
            compacted 2 up to m2: short +likes tabs
            s3 asks fake/a
            m2 saved to memory/a.md
            s3 Text@0 "2"
            s3 answered
            t2 COMPLETED
    "#]]);
}

#[test]
fn the_last_turns_of_many_are_kept_unchanged() {
    check(expect![[r#"
        let five = create; say a; text 1; answer; say b; text 2; answer; say c; text 3; answer; say d; text 4; answer; say e; text 5; answer
        five > compact
            compacting up to m10, 11 tokens
            -> summarize m10
        five > say f; text 6; answer; compact
            t6 User: "f"
            t6 starts, attempt 1
            s6 asks fake/a
            s6 Text@0 "6"
            s6 answered
            t6 COMPLETED
            compacting up to m6, 11 tokens
            -> summarize m6
        five > say f; text 6; answer; compact; summary m6 short; compact
            t6 User: "f"
            t6 starts, attempt 1
            s6 asks fake/a
            s6 Text@0 "6"
            s6 answered
            t6 COMPLETED
            compacting up to m6, 11 tokens
            compacted 6 up to m6: short
            compacting up to m12, 0 tokens
            -> summarize m12
        five > say f; text 6; answer [790/10]; say g
            t6 User: "f"
            t6 starts, attempt 1
            s6 asks fake/a
            s6 Text@0 "6"
            s6 answered
            t6 COMPLETED
            t7 User: "g"
            t7 starts, attempt 1
            compacting up to m6, 801 tokens
            -> summarize m6, wake +600
    "#]]);
}

// The provider counted a different prompt.
#[test]
fn a_token_count_is_not_used_for_another_prompt() {
    check(expect![[r#"
        let talk = create; say one; text 1; answer [790/10]
        talk > switch fake/b; say two
            model fake/b
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/b
            -> model s2, wake +600
        talk > instruct be brief; say two
            instructed: Some("be brief")
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        talk > tools paint; say two
            tools of the client: paint
            t2 User: "two"
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        talk > label a=b; say two
            label a=b
            t2 User: "two"
            t2 starts, attempt 1
            compacting up to m2, 801 tokens
            -> summarize m2, wake +600
    "#]]);
}

// The next response needs room, too, so less of each result is shown until it fits.
#[test]
fn an_overflow_by_the_results_of_one_step_shows_less_of_them() {
    let mut session = Session::after("create; say one; answer a look + b look [1]");
    let result = "x".repeat(5_000);
    session.play(&format!("done a {result}")).unwrap();
    session.play(&format!("done b {result}")).unwrap();
    let mut sizes = Vec::new();
    while session.state.open.is_some() {
        sizes.push(estimate_tokens(&assemble(&session.state)));
        session.play("fails context_overflow").unwrap();
        session.check_replay();
    }
    assert!(sizes.len() > 1 && sizes.is_sorted_by(|one, next| one > next), "{sizes:?}");
    assert!(session.log.last().unwrap().starts_with("t1 FAILED context_overflow"));
    session.play("say two").unwrap();
    assert_eq!(session.state.window(), 1000, "a new turn starts with the whole window");
}

#[test]
fn nothing_is_summarized_while_a_turn_is_held() {
    check(expect![[r#"
        let talk = rules recovery=ask; create; say one; text 1; answer; say two; fails context_overflow; recover
        talk > wake
            (nothing)
        talk > start t2
            t2 released
            -> summarize m2, wake +600
    "#]]);
}
