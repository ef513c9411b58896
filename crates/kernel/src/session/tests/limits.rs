//! Tests of the limits of a turn: steps, tokens, time.

use expect_test::expect;

use super::check;

#[test]
fn steps_are_limited() {
    check(expect![[r#"
        let given = rules steps=2; create; say hi; answer a look; done a
        given > answer b edit; done b
            s2 answered b=edit{}
            b starts at Daemon
            b Succeeded:
            t1 stops: step_limit: max turn iterations reached
            t1 FAILED step_limit: max turn iterations reached
        given > text bye; answer
            s2 Text@0 "bye"
            s2 answered
            t1 COMPLETED
    "#]]);
}

#[test]
fn tokens_are_limited() {
    check(expect![[r#"
        let given = rules tokens=100; create; say hi
        given > answer [90/9] a look; done a
            s1 answered a=look{}
            a starts at Daemon
            a Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
        given > answer [90/10] a look; done a
            s1 answered a=look{}
            a starts at Daemon
            a Succeeded:
            t1 stops: token_limit: max turn tokens reached
            t1 FAILED token_limit: max turn tokens reached
        given > answer [90/10]
            s1 answered
            t1 COMPLETED
    "#]]);
}

#[test]
fn huge_token_counts_do_not_overflow() {
    check(expect![[r#"
        create; say hi > answer [18446744073709551615/18446744073709551615]; say again
            s1 answered
            t1 COMPLETED
            t2 User: "again"
            t2 starts, attempt 1
            compacting up to m1, 18446744073709551615 tokens
            -> summarize m1, wake +600
    "#]]);
}

#[test]
fn time_is_limited() {
    check(expect![[r#"
        let given = create; say hi
        given > +599; wake
            (nothing)
            -> model s1, wake +600
        given > +600; wake
            t1 stops: time_limit: the turn took too long
            s1 cut: the turn took too long
            t1 FAILED time_limit: the turn took too long
        given > +600; text late
            s1 Text@0 "late"
            t1 stops: time_limit: the turn took too long
            s1 cut: the turn took too long
            t1 FAILED time_limit: the turn took too long
        create; say hi; answer a shell > +600; wake; stopped a
            t1 stops: time_limit: the turn took too long
            a Cancelled: killed
            t1 FAILED time_limit: the turn took too long
    "#]]);
}

#[test]
fn waiting_for_people_does_not_count() {
    check(expect![[r#"
        create; say hi; answer a desk > +600; wake
            (nothing)
        let given = rules ask=exec; create; say hi; +100; answer a shell; assess a
        given > +10000; wake
            (nothing)
        given > +10000; allow a
            a Allow by Client
            a starts at Daemon
            -> run a, wake +10600
        given > +10000; allow a; +499; wake
            a Allow by Client
            a starts at Daemon
            -> run a, wake +10600
        given > +10000; allow a; +500; wake
            a Allow by Client
            a starts at Daemon
            t1 stops: time_limit: the turn took too long
        given > +10000; cancel
            t1 stops: cancelled
            a Cancelled: the turn was stopped
            t1 CANCELLED
    "#]]);
}

#[test]
fn time_can_be_unlimited() {
    check(expect![[r#"
        let given = rules forever ask=exec; create; say hi; answer a shell; assess a
        given > +10000; allow a
            a Allow by Client
            a starts at Daemon
            -> run a, wake never
    "#]]);
}
