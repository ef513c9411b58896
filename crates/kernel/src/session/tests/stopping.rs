//! Tests of cancelling and of failing models: a turn always ends exactly once.

use expect_test::expect;

use super::check;

#[test]
fn cancelling_while_the_model_writes() {
    check(expect![[r#"
        create; say hi > cancel
            t1 stops: cancelled
            s1 cut: canceled
            t1 CANCELLED
        create; say hi; text Hel > cancel enough; s1 text lo; s1 answer
            t1 stops: cancelled: enough
            s1 cut: canceled
            t1 CANCELLED: enough
    "#]]);
}

#[test]
fn cancelling_while_a_person_is_asked() {
    check(expect![[r#"
        let given = rules ask=exec; create; say hi; answer c1 shell + c2 edit
        given > cancel; assess c1
            t1 stops: cancelled
            c1 Cancelled: the turn was stopped
            c2 Cancelled: the turn was stopped
            t1 CANCELLED
        given > assess c1; cancel; allow c1
            c1 asked
            t1 stops: cancelled
            c1 Cancelled: the turn was stopped
            c2 Cancelled: the turn was stopped
            t1 CANCELLED
            refused: no approvals pending for session sess
    "#]]);
}

#[test]
fn cancelling_waits_for_running_daemon_calls() {
    check(expect![[r#"
        let given = create; say hi; answer a edit + b edit [1]
        given > cancel
            t1 stops: cancelled
            b Cancelled: the turn was stopped
        given > cancel; stopped a
            t1 stops: cancelled
            b Cancelled: the turn was stopped
            a Cancelled: killed
            t1 CANCELLED
        given > cancel; done a; done a
            t1 stops: cancelled
            b Cancelled: the turn was stopped
            a Succeeded:
            t1 CANCELLED
        let reads = create; say hi; answer a look + b look [1] + c desk
        reads > cancel; stopped b; stopped a
            t1 stops: cancelled
            c Cancelled: the turn was stopped
            b Cancelled: killed
            a Cancelled: killed
            t1 CANCELLED
    "#]]);
}

#[test]
fn cancelling_does_not_wait_for_a_client() {
    check(expect![[r#"
        create; say hi; answer a desk > cancel; done a
            t1 stops: cancelled
            a Cancelled: the turn was stopped
            t1 CANCELLED
    "#]]);
}

#[test]
fn cancelling_twice_or_nothing_is_no_error() {
    check(expect![[r#"
        create; say hi; answer a edit > cancel; cancel; stopped a; cancel
            t1 stops: cancelled
            a Cancelled: killed
            t1 CANCELLED
        create > cancel
            (nothing)
    "#]]);
}

#[test]
fn nothing_starts_while_a_turn_stops() {
    check(expect![[r#"
        create; say hi; answer a edit; cancel > say more; start t1; later x; +999; wake
            refused: session already running: sess
            refused: session already running: sess
            t2 User: "x"
    "#]]);
}

#[test]
fn a_failing_model_fails_the_turn() {
    check(expect![[r#"
        create; say hi > fails rate_limited
            s1 cut: rate_limited happened
            t1 stops: rate_limited: rate_limited happened
            t1 FAILED rate_limited: rate_limited happened
        create; say hi > fails unavailable
            s1 cut: unavailable happened
            t1 stops: unavailable: unavailable happened
            t1 FAILED unavailable: unavailable happened
        create; say hi > fails unauthorized
            s1 cut: unauthorized happened
            t1 stops: unauthorized: unauthorized happened
            t1 FAILED unauthorized: unauthorized happened
        create; say hi > fails unknown_model
            s1 cut: unknown_model happened
            t1 stops: unknown_model: unknown_model happened
            t1 FAILED unknown_model: unknown_model happened
        create; say hi > fails rejected
            s1 cut: rejected happened
            t1 stops: rejected: rejected happened
            t1 FAILED rejected: rejected happened
        create; say hi; text Hel > fails stream_cut; s1 text lo; s1 answer
            s1 cut: stream_cut happened
            t1 stops: stream_cut: stream_cut happened
            t1 FAILED stream_cut: stream_cut happened
        create; say hi; text Hel > fails stream_stalled
            s1 cut: stream_stalled happened
            t1 stops: stream_stalled: stream_stalled happened
            t1 FAILED stream_stalled: stream_stalled happened
        create; say hi; answer a edit; done a > fails malformed_answer
            s2 cut: malformed_answer happened
            t1 stops: malformed_answer: malformed_answer happened
            t1 FAILED malformed_answer: malformed_answer happened
        create; say hi > fails unsupported_input
            s1 cut: unsupported_input happened
            t1 stops: unsupported_input: unsupported_input happened
            t1 FAILED unsupported_input: unsupported_input happened
    "#]]);
}
