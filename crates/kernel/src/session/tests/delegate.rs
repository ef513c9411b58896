//! Tools that clients run.

use expect_test::expect;

use super::check;

#[test]
fn a_client_brings_its_own_tools() {
    check(expect![[r#"
        create > tools open:low of=look
            tools of the client: open
        create > tools open:low run of=look within=60; tools open:low run of=look within=60
            tools of the client: open run
        create > tools look
            refused: bad tools: the daemon has a tool look itself
        create > tools a a
            refused: bad tools: tool a is there twice
        create > tools a/b
            refused: bad tools: "a/b" is no name for a tool: 1 to 96 letters, digits, "_" or "-"
        let given = create; tools open:low run of=look within=60; say hi
        given > text I look.; answer a open {"app":1} + b run + c edit
            s1 Text@0 "I look."
            s1 answered a=open{"app":1} b=run{} c=edit{}
            a starts at Client until +60, Low, "I look."
            b starts at Client until +60, "I look."
            -> wake +60
        given > answer a look + b open
            s1 answered a=look{} b=open{}
            a starts at Daemon
            -> run a, wake +600
        given > answer a open; return a fine
            s1 answered a=open{}
            a starts at Client until +60, Low
            a Succeeded: fine
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn what_is_forbidden_never_reaches_a_client() {
    check(expect![[r#"
        create; tools wipe:critical open:low; say hi > answer a wipe + b open
            s1 answered a=wipe{} b=open{}
            a Denied: wipe is forbidden
            b starts at Client, Low
        create; rules ask=network ask=fetch; tools open:low; say hi > answer a open
            s1 answered a=open{}
            a starts at Client, Low
    "#]]);
}

#[test]
fn results_come_in_any_order_and_once() {
    check(expect![[r#"
        let given = create; tools open run within=60; say hi; answer a open + b run {"p":1}
        given > return b two; return a one
            b Succeeded: two
            a Succeeded: one
            s2 asks fake/a
            -> model s2, wake +600
        given > return b two; return b again
            b Succeeded: two
            refused: tool call b is over
            -> wake +60
        given > return nonsense
            refused: tool call not found: nonsense
            -> wake +60
        given; return a; return b > return a late
            refused: tool call a is over
            -> model s2, wake +600
        given; cancel > return a late
            refused: tool call a is over
        create; say hi; answer a shell > return a mine
            refused: tool call a is not waiting for a client
            -> run a, wake +600
    "#]]);
}

#[test]
fn a_client_has_only_so_much_time() {
    check(expect![[r#"
        let given = create; tools open run within=60; say hi; answer a open + b run {"p":1}
        given; +59 > wake; return a in time
            a Succeeded: in time
            -> wake +60
        given; +60 > return a too late
            refused: tool call a is over
            -> wake +60
        given; +60 > wake
            a TimedOut: Tool execution timed out.
            b TimedOut: Tool execution timed out.
            s2 asks fake/a
            -> model s2, wake +660
        given; +500 > recover
            t1 resumed
            -> wake +560
        given; +500; recover; +59 > return a in time
            a Succeeded: in time
            -> wake +560
        create; tools open; say hi; answer a open; +5000 > recover; return a at last
            a Succeeded: at last
            s2 asks fake/a
            -> model s2, wake +5600
    "#]]);
}

#[test]
fn no_policy_gives_up_on_a_client_after_a_crash() {
    check(expect![[r#"
        rules recovery=leave; create; tools open; say hi; answer a open > recover
            (nothing)
        rules recovery=ask; create; tools open; say hi; answer a open > recover
            (nothing)
    "#]]);
}

#[test]
fn a_message_with_a_name_is_answered_once() {
    check(expect![[r#"
        let given = create; say hi as k1
        given > say hi as k1
            (nothing)
            -> model s1, wake +600
        given > say ho as k1
            refused: another message was sent under the name of turn turn_20250101t000000z_h4ql634h42wveh3k
            -> model s1, wake +600
        given; text Hello.; answer > say hi as k1
            (nothing)
        given; text Hello.; answer > say hi as k2
            t2 User: "hi"
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        given > say hi
            refused: session already running: sess
            -> model s1, wake +600
    "#]]);
}
