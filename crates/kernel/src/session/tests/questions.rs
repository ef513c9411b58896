//! Tests of questions that running calls ask the user.

use expect_test::expect;

use super::check;

#[test]
fn the_first_answer_that_fits_counts() {
    check(expect![[r#"
        let asking = create; say hi; answer c1 shell; ask c1 name
        create; say hi; answer c1 shell > ask c1 name
            c1 asks q1 "Which?"
            -> run c1
        asking > reply q1 {"name":"Ada"}
            q1 {"name":"Ada"} by Client
            -> run c1, wake +600
        asking > allow q1; reply q1 {"name":1}; reply q1 {"name":"Ada"}; deny q1
            refused: the answer does not fit the question: `name` needs a value
            refused: the answer does not fit the question: `name` must be text
            q1 {"name":"Ada"} by Client
            refused: question question_20250101t000000z_acdydt5jpbhubkef is not open
            -> run c1, wake +600
        asking > deny q1: not now; reply q1 {"name":"Ada"}
            q1 declined by Client: not now
            refused: question question_20250101t000000z_acdydt5jpbhubkef is not open
            -> run c1, wake +600
        asking > allow q1 t9; allow q9; allow c1
            refused: tool call c1 does not belong to turn t9
            refused: no approvals pending for session sess
            refused: no approvals pending for session sess
            -> run c1
        create; say hi; answer c1 shell; ask_link c1 > allow q1; done c1
            q1 {} by Client
            c1 Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
        asking > withdraw q1; withdraw q1
            q1 cancelled
            -> run c1, wake +600
    "#]]);
}

#[test]
fn a_question_ends_with_its_call() {
    check(expect![[r#"
        let asking = create; say hi; answer c1 shell; ask c1
        asking > done c1
            c1 Succeeded:
            q1 cancelled
            s2 asks fake/a
            -> model s2, wake +600
        asking > cancel
            t1 stops: cancelled
            q1 cancelled
        asking; ask_link c1 > cancel; stopped c1
            t1 stops: cancelled
            q1 cancelled
            q2 cancelled
            c1 Cancelled: killed
            t1 CANCELLED
        asking > recover
            c1 Interrupted: the daemon stopped while this call was running; how far it got is not known
            q1 cancelled
            t1 resumed
            s2 asks fake/a
            -> model s2, wake +600
        asking > rules recovery=ask; recover
            c1 Interrupted: the daemon stopped while this call was running; how far it got is not known
            q1 cancelled
            t1 held
        asking > rules recovery=leave; recover
            c1 Interrupted: the daemon stopped while this call was running; how far it got is not known
            q1 cancelled
            t1 stops: interrupted: the daemon stopped while this turn was running
            t1 FAILED interrupted: the daemon stopped while this turn was running
    "#]]);
}

#[test]
fn a_question_expires_while_the_turn_timer_is_paused() {
    check(expect![[r#"
        let asking = rules expires=60; create; say hi; answer c1 shell; +500; ask c1
        rules expires=60; create; say hi; answer c1 shell; +500 > ask c1
            c1 asks q1 "Which?" until +560
            -> run c1, wake +560
        asking > +60; wake
            q1 declined by Clock: nobody answered in time
            -> run c1, wake +660
        asking > +60; allow q1
            refused: question question_20250101t000820z_acdydt5jpbhubkef is not open
            -> run c1, wake +560
        asking > +30; allow q1
            q1 {} by Client
            -> run c1, wake +630
        create; say hi; answer c1 shell; +500; ask c1; +9999; allow q1 > wake
            (nothing)
            -> run c1, wake +10599
    "#]]);
}

#[test]
fn an_unattended_turn_asks_no_questions() {
    check(expect![[r#"
        create; say hi unattended; answer c1 shell > ask c1
            (nothing)
            -> run c1, wake +600
        create; say hi; answer c1 shell; done c1 > ask c1
            (nothing)
            -> model s2, wake +600
        rules ask=exec; create; say hi; answer c1 shell > ask c1
            (nothing)
            -> assess c1, wake +600
        create; say hi; answer c1 shell; cancel > ask c1
            (nothing)
        create > ask c1
            (nothing)
    "#]]);
}
