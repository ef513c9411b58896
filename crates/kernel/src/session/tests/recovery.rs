//! Tests of recovery after a crash under each recovery policy.

use expect_test::expect;

use super::check;

#[test]
fn an_idle_session_needs_no_recovery() {
    check(expect![[r#"
        create > recover
            (nothing)
        create; later hi > recover
            (nothing)
        create; say hi; answer > recover
            (nothing)
        > recover
            refused: session not found: sess
    "#]]);
}

#[test]
fn the_time_the_daemon_was_down_does_not_count() {
    check(expect![[r#"
        create; say hi; text Hel > +10000; recover
            s1 cut: the daemon stopped
            t1 resumed
            s2 asks fake/a
            -> model s2, wake +10600
        create; say hi; text Hel > +10000; recover; +599; wake
            s1 cut: the daemon stopped
            t1 resumed
            s2 asks fake/a
            -> model s2, wake +10600
        create; say hi; text Hel > +10000; recover; +600; wake
            s1 cut: the daemon stopped
            t1 resumed
            s2 asks fake/a
            t1 stops: time_limit: the turn took too long
            s2 cut: the turn took too long
            t1 FAILED time_limit: the turn took too long
    "#]]);
}

#[test]
fn a_turn_is_resumed() {
    check(expect![[r#"
        let thinking = create; say hi
        thinking > recover; s1 answer
            t1 resumed
            s1 answered
            t1 COMPLETED
        let writing = create; say hi; text Hel
        writing > recover; s1 answer
            s1 cut: the daemon stopped
            t1 resumed
            s2 asks fake/a
            -> model s2, wake +600
        let looking = create; say hi; answer a look
        looking > recover; done a
            t1 resumed
            a Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
        let acting = create; say hi; answer a shell + b edit
        acting > recover; done a
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 resumed
            b starts at Daemon
            -> run b, wake +600
        let client = create; say hi; answer a pen
        client > recover; done a
            a Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
        let asked = rules ask=exec expires=60; create; say hi; answer a shell; assess a
        asked > recover; allow a
            a Allow by Client
            a starts at Daemon
            -> run a, wake +600
        let stopping = create; say hi; answer a shell; cancel
        stopping > recover; stopped a
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 CANCELLED
    "#]]);
}

#[test]
fn a_turn_waits_for_a_decision() {
    check(expect![[r#"
        let thinking = rules recovery=ask; create; say hi
        thinking > recover; recover
            t1 held
        thinking > recover; +9999; wake; start t1
            t1 held
            t1 released
            -> model s1, wake +10599
        let writing = rules recovery=ask; create; say hi; text Hel
        writing > recover; start t1
            s1 cut: the daemon stopped
            t1 held
            t1 released
            s2 asks fake/a
            -> model s2, wake +600
        let looking = rules recovery=ask; create; say hi; answer a look
        looking > recover
            t1 held
        looking > recover; start t1; start t1
            t1 held
            t1 released
            refused: session already running: sess
            -> run a, wake +600
        let acting = rules recovery=ask; create; say hi; answer a shell + b edit
        acting > recover; start t1
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 held
            t1 released
            b starts at Daemon
            -> run b, wake +600
        let client = rules recovery=ask; create; say hi; answer a pen
        client > recover; done a; start t1
            a Succeeded:
            s2 asks fake/a
            refused: session already running: sess
            -> model s2, wake +600
        let asked = rules recovery=ask; rules ask=exec expires=60; create; say hi; answer a shell; assess a
        asked > recover; allow a
            a Allow by Client
            a starts at Daemon
            -> run a, wake +600
        let stopping = rules recovery=ask; create; say hi; answer a shell; cancel
        stopping > recover; stopped a
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 CANCELLED
    "#]]);
}

#[test]
fn a_turn_is_abandoned() {
    check(expect![[r#"
        let thinking = rules recovery=leave; create; say hi
        thinking > recover
            t1 stops: interrupted: the daemon stopped while this turn was running
            s1 cut: the daemon stopped while this turn was running
            t1 FAILED interrupted: the daemon stopped while this turn was running
        let writing = rules recovery=leave; create; say hi; text Hel
        writing > recover
            s1 cut: the daemon stopped
            t1 stops: interrupted: the daemon stopped while this turn was running
            t1 FAILED interrupted: the daemon stopped while this turn was running
        let looking = rules recovery=leave; create; say hi; answer a look
        looking > recover; done a
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 stops: interrupted: the daemon stopped while this turn was running
            t1 FAILED interrupted: the daemon stopped while this turn was running
        let acting = rules recovery=leave; create; say hi; answer a shell + b edit
        acting > recover
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 stops: interrupted: the daemon stopped while this turn was running
            b Cancelled: the turn was stopped
            t1 FAILED interrupted: the daemon stopped while this turn was running
        let client = rules recovery=leave; create; say hi; answer a pen
        client > recover; done a
            a Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
        let asked = rules recovery=leave; rules ask=exec expires=60; create; say hi; answer a shell; assess a
        asked > recover; allow a
            a Allow by Client
            a starts at Daemon
            -> run a, wake +600
        let stopping = rules recovery=leave; create; say hi; answer a shell; cancel
        stopping > recover
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 CANCELLED
    "#]]);
}

#[test]
fn a_held_turn_is_an_approval_request() {
    check(expect![[r#"
        let given = rules recovery=ask; create; say one; text 1; recover
        given > allow t1
            t1 released
            s2 asks fake/a
            -> model s2, wake +600
        given > deny t1 : enough
            t1 stops: cancelled: enough
            t1 CANCELLED: enough
        given > allow t1; allow t1
            t1 released
            s2 asks fake/a
            refused: no approvals pending for session sess
            -> model s2, wake +600
        given > allow c1
            refused: no approvals pending for session sess
    "#]]);
}

#[test]
fn a_held_turn_can_be_cancelled() {
    // Nothing runs while a turn is held, so nothing will report.
    check(expect![[r#"
        rules recovery=ask; create; say hi; recover > cancel
            t1 stops: cancelled
            s1 cut: canceled
            t1 CANCELLED
        rules recovery=ask; create; say hi; answer a desk; recover > cancel
            t1 stops: cancelled
            a Cancelled: the turn was stopped
            t1 CANCELLED
        rules recovery=ask; create; say hi; answer a look; recover > cancel
            t1 stops: cancelled
            a Cancelled: the turn was stopped
            t1 CANCELLED
    "#]]);
}

#[test]
fn held_time_does_not_count() {
    check(expect![[r#"
        let given = rules recovery=ask; create; say hi; answer a look; recover
        given > +9999; start t1
            t1 released
            -> run a, wake +10599
        given > +1000; done a; +9999; start t1
            a Succeeded:
            t1 released
            s2 asks fake/a
            -> model s2, wake +11599
    "#]]);
}

#[test]
fn a_summary_is_written_again() {
    check(expect![[r#"
        let given = create; say one; text 1; answer; say two; fails context_overflow
        given > recover
            t2 resumed
            -> summarize m2, wake +600
        given > rules recovery=ask; recover; summary m2 short; start t2
            t2 held
            compacted 2 up to m2: short
            t2 released
            s3 asks fake/a
            -> model s3, wake +600
        given > rules recovery=leave; recover
            t2 stops: interrupted: the daemon stopped while this turn was running
            not compacted: the turn is over
            t2 FAILED interrupted: the daemon stopped while this turn was running
    "#]]);
}

#[test]
fn an_interrupted_call_may_be_repeated() {
    check(expect![[r#"
        create; say hi; answer a shell {"x":1}; recover > answer b shell {"x":1}
            s2 answered b=shell{"x":1}
            b starts at Daemon
            -> run b, wake +600
    "#]]);
}
