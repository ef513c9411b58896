//! Tests of calls that need approval.

use expect_test::expect;

use super::check;

#[test]
fn a_call_is_assessed_before_approval_is_requested() {
    check(expect![[r#"
        rules ask=exec; create; say hi > answer c1 shell
            s1 answered c1=shell{}
            -> assess c1, wake +600
        rules ask=exec; create; say hi; answer c1 shell > assess c1; assess c1
            c1 asked
        rules ask=look; create; say hi > answer c1 look; assess c1
            s1 answered c1=look{}
            c1 asked
    "#]]);
}

#[test]
fn an_approved_call_runs() {
    check(expect![[r#"
        let asked = rules ask=exec; create; say hi; answer c1 shell; assess c1
        asked > allow c1
            c1 Allow by Client
            c1 starts at Daemon
            -> run c1, wake +600
        asked > allow c1 t1; done c1
            c1 Allow by Client
            c1 starts at Daemon
            c1 Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn a_denial_is_sent_to_the_model_or_ends_the_turn() {
    check(expect![[r#"
        let asked = rules ask=exec; create; say hi; answer c1 shell; assess c1
        asked > deny c1
            c1 Deny by Client
            c1 Denied: approval denied
            s2 asks fake/a
            -> model s2, wake +600
        asked > deny c1: too risky
            c1 Deny by Client: too risky
            c1 Denied: approval denied: too risky
            s2 asks fake/a
            -> model s2, wake +600
        asked > rules on_deny=fail; deny c1
            c1 Deny by Client
            c1 Denied: approval denied
            t1 stops: approval_denied: approval denied
            t1 FAILED approval_denied: approval denied
        let two = rules ask=exec on_deny=fail; create; say hi; answer c1 shell + c2 edit; assess c1
        two > deny c1
            c1 Deny by Client
            c1 Denied: approval denied
            t1 stops: approval_denied: approval denied
            c2 Cancelled: the turn was stopped
            t1 FAILED approval_denied: approval denied
    "#]]);
}

#[test]
fn an_answer_without_a_request_is_refused() {
    check(expect![[r#"
        let asked = rules ask=exec; create; say hi; answer c1 shell; assess c1
        asked > allow c1 t9
            refused: tool call c1 does not belong to turn t9
        asked > allow c9
            refused: no approval pending for tool call c9
        asked > allow c1; allow c1; deny c1
            c1 Allow by Client
            c1 starts at Daemon
            refused: no approvals pending for session sess
            refused: no approvals pending for session sess
            -> run c1, wake +600
        asked > cancel; allow c1
            t1 stops: cancelled
            c1 Cancelled: the turn was stopped
            t1 CANCELLED
            refused: no approvals pending for session sess
        create > allow c1
            refused: no approvals pending for session sess
    "#]]);
}

#[test]
fn two_requests_are_answered_one_by_one() {
    check(expect![[r#"
        let two = rules ask=look; create; say hi; answer a look + b look [1]; assess a; assess b
        two > allow b; allow b; deny a
            b Allow by Client
            b starts at Daemon
            refused: no approval pending for tool call b
            a Deny by Client
            a Denied: approval denied
            -> run b, wake +600
    "#]]);
}

#[test]
fn an_expired_approval_is_denied() {
    check(expect![[r#"
        let given = rules ask=exec expires=60; create; say hi; answer c1 shell; assess c1
        given > +59; wake
            (nothing)
            -> wake +60
        given > +60; wake
            c1 Deny by Clock: nobody answered in time
            c1 Denied: approval denied: nobody answered in time
            s2 asks fake/a
            -> model s2, wake +660
        given > rules on_deny=fail; +60; wake
            c1 Deny by Clock: nobody answered in time
            c1 Denied: approval denied: nobody answered in time
            t1 stops: approval_denied: approval denied
            t1 FAILED approval_denied: approval denied
        given > +60; allow c1
            refused: no approval pending for tool call c1
            -> wake +60
        given > +61; label a=1; allow c1
            label a=1
            c1 Deny by Clock: nobody answered in time
            c1 Denied: approval denied: nobody answered in time
            s2 asks fake/a
            refused: no approvals pending for session sess
            -> model s2, wake +661
    "#]]);
}

#[test]
fn a_later_call_is_assessed_once_earlier_ones_are_done() {
    check(expect![[r#"
        let given = rules ask=exec; create; say hi; answer a edit + b shell
        given > wake
            (nothing)
            -> run a, wake +600
        given > done a
            a Succeeded:
            -> assess b, wake +600
    "#]]);
}

#[test]
fn a_request_for_a_waiting_call_expires_too() {
    check(expect![[r#"
        rules ask=exec expires=30; create; say hi; answer a edit + b shell; assess b; +30 > wake; done a
            b Deny by Clock: nobody answered in time
            a Succeeded:
            b Denied: approval denied: nobody answered in time
            s2 asks fake/a
            -> model s2, wake +630
    "#]]);
}
