//! Tests of verification before a turn ends.

use expect_test::expect;

use super::{Session, check};

#[test]
fn a_change_is_verified() {
    check(expect![[r#"
        let changed = rules verify; create; say hi; answer a edit; done a; text Done
        changed > answer
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            -> run k1, wake +600
        changed > answer; done k1 ok
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Succeeded: ok
            t1 COMPLETED, verified
        rules verify; create; say hi; answer a look; done a > answer
            s2 answered
            t1 COMPLETED
        create; say hi; answer a edit; done a > answer
            s2 answered
            t1 COMPLETED
        rules verify; create; say hi; answer a edit; failed a > answer
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            -> run k1, wake +600
    "#]]);
}

#[test]
fn a_failed_verification_may_be_fixed() {
    check(expect![[r#"
        let changed = rules verify; create; say hi; answer a edit; done a; text Done
        changed > answer; failed k1 1 test fails
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Failed: 1 test fails
            s3 asks fake/a
            -> model s3, wake +600
        changed > answer; failed k1 no; answer b edit [1]; done b; answer; done k2
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Failed: no
            s3 asks fake/a
            s3 answered b=edit[1]
            b starts at Daemon
            b Succeeded:
            s4 asks fake/a
            s4 answered
            verify k2=verify{}
            k2 starts at Daemon
            k2 Succeeded:
            t1 COMPLETED, verified
        changed > answer; failed k1 no; answer b edit [1]; done b; answer; failed k2
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Failed: no
            s3 asks fake/a
            s3 answered b=edit[1]
            b starts at Daemon
            b Succeeded:
            s4 asks fake/a
            s4 answered
            verify k2=verify{}
            k2 starts at Daemon
            k2 Failed:
            t1 stops: verification_failed: verification failed
            t1 FAILED verification_failed: verification failed
        changed > answer; failed k1 no; text I cannot; answer
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Failed: no
            s3 asks fake/a
            s3 Text@0 "I cannot"
            s3 answered
            t1 COMPLETED, not verified
        changed > rules attempts=0; answer; failed k1 no
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Failed: no
            t1 stops: verification_failed: verification failed
            t1 FAILED verification_failed: verification failed
    "#]]);
}

#[test]
fn the_verification_itself_may_need_approval() {
    check(expect![[r#"
        let changed = rules verify; create; say hi; answer a edit; done a; text Done
        changed > rules ask=verify; answer; assess k1; allow k1; done k1
            s2 answered
            verify k1=verify{}
            k1 asked
            k1 Allow by Client
            k1 starts at Daemon
            k1 Succeeded:
            t1 COMPLETED, verified
        changed > rules ask=verify; answer; assess k1; deny k1: not now
            s2 answered
            verify k1=verify{}
            k1 asked
            k1 Deny by Client: not now
            k1 Denied: approval denied: not now
            t1 COMPLETED, not verified
        changed > rules ask=verify on_deny=fail; answer; assess k1; deny k1
            s2 answered
            verify k1=verify{}
            k1 asked
            k1 Deny by Client
            k1 Denied: approval denied
            t1 stops: approval_denied: approval denied
            t1 FAILED approval_denied: approval denied
    "#]]);
}

#[test]
fn a_verification_is_never_a_repetition() {
    check(expect![[r#"
        let given = rules verify; create; say hi; answer a verify; done a
        given > answer; done k1
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Succeeded:
            t1 COMPLETED, verified
    "#]]);
}

#[test]
fn a_verification_can_be_cancelled() {
    check(expect![[r#"
        let changed = rules verify; create; say hi; answer a edit; done a; text Done
        changed > answer; cancel; stopped k1
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            t1 stops: cancelled
            k1 Cancelled: killed
            t1 CANCELLED
    "#]]);
}

#[test]
fn an_interrupted_verification_has_no_result() {
    check(expect![[r#"
        let changed = rules verify; create; say hi; answer a edit; done a; text Done
        changed > rules attempts=1; answer; recover; text Done; answer; done k2
            s2 answered
            verify k1=verify{}
            k1 starts at Daemon
            k1 Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 resumed
            s3 asks fake/a
            s3 Text@0 "Done"
            s3 answered
            verify k2=verify{}
            k2 starts at Daemon
            k2 Succeeded:
            t1 COMPLETED, verified
    "#]]);
}

#[test]
fn the_turn_records_whether_it_was_verified() {
    let changed = "rules verify; create; say hi; answer a edit; done a; answer";
    let verified = |end| Session::after(&format!("{changed}; {end}")).state.turns[0].verified;
    assert_eq!(verified("done k1"), Some(true));
    assert_eq!(verified("failed k1; answer"), Some(false));
}
