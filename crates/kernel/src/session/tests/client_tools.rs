//! Tests of tools that clients run.

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
            a claimed by client
            a Succeeded: fine
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn refused_calls_never_reach_a_client() {
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
fn results_arrive_in_any_order_and_count_once() {
    check(expect![[r#"
        let given = create; tools open run within=60; say hi; answer a open + b run {"p":1}
        given > return b two; return a one
            b claimed by client
            b Succeeded: two
            a claimed by client
            a Succeeded: one
            s2 asks fake/a
            -> model s2, wake +600
        given > return b two; return b again
            b claimed by client
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
fn a_client_call_times_out() {
    check(expect![[r#"
        let given = create; tools open run within=60; say hi; answer a open + b run {"p":1}
        given; +59 > wake; return a in time
            a claimed by client
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
            a claimed by client
            a Succeeded: in time
            -> wake +560
        create; tools open; say hi; answer a open; +5000 > recover; return a at last
            a claimed by client
            a Succeeded: at last
            s2 asks fake/a
            -> model s2, wake +5600
    "#]]);
}

#[test]
fn client_calls_survive_a_crash_under_every_policy() {
    check(expect![[r#"
        rules recovery=leave; create; tools open; say hi; answer a open > recover
            (nothing)
        rules recovery=ask; create; tools open; say hi; answer a open > recover
            (nothing)
    "#]]);
}

#[test]
fn one_client_runs_a_call() {
    check(expect![[r#"
        let given = create; tools open run; say hi; answer a open + b run
        given > claim one/1 a b; claim one/1 a
            a claimed by one
            b claimed by one
        given; claim one/1 a > claim two/2 a; claim one/3 a; claim two/2 b; return b done by two/2
            refused: tool call a is run by another client
            refused: tool call a is run by another client
            b claimed by two
            b Succeeded: done
        given; claim one/1 a > claim two/2 b a
            refused: tool call a is run by another client
        given; claim one/1 a > return a mine by two/2; return a mine by one/2; return a yes by one/1
            refused: tool call a is run by another client
            refused: tool call a is run by another client
            a Succeeded: yes
        given; claim one/1 a > return a yes by one
            a Succeeded: yes
        given > return a yes by two/2; claim one/1 a
            a claimed by two
            a Succeeded: yes
            refused: tool call a is over
        given > claim one/1 nonsense
            refused: tool call not found: nonsense
        create; say hi; answer a shell > claim one/1 a
            refused: tool call a is not waiting for a client
            -> run a, wake +600
    "#]]);
}

#[test]
fn a_client_may_reconnect() {
    check(expect![[r#"
        let given = create; tools open look_again!; say hi; answer a open + b look_again; claim one/1 a b
        given > disconnect two/1; disconnect one/2; disconnect one/1; disconnect one/1
            a waits for one until +30
            b waits for one until +30
            -> wake +30
        given; disconnect one/1 > claim two/2 a; claim one/2 a; return a done by one/2
            refused: tool call a is run by another client
            a claimed by one
            a Succeeded: done
            -> wake +30
        given; disconnect one/1 > return a done by one/2
            a Succeeded: done
            -> wake +30
        given; disconnect one/1; +29 > wake
            (nothing)
            -> wake +30
        given; disconnect one/1; +30 > wake; claim two/2 b; return b seen by two/2
            a Interrupted: the client that ran this call is gone; what came of it is not known
            b free again
            b claimed by two
            b Succeeded: seen
            s2 asks fake/a
            -> model s2, wake +630
        given; disconnect one/1; claim one/2 a b; +30 > wake
            (nothing)
        given; disconnect one/1 > claim_new one/2 a; claim_new one/1 a; return a done by one/1
            refused: tool call a is run by another client
            refused: tool call a is run by another client
            a Succeeded: done
            -> wake +30
        given > claim_new one/2 a; claim_new one/1 a
            refused: tool call a is run by another client
    "#]]);
}

#[test]
fn clients_run_the_tools_of_their_own_front_end() {
    check(expect![[r#"
        let given = create; tools open@desk ask; say hi; answer a open + b ask
        given > claim other/1 a; return a no by other/1; return a no by other; claim desk/1 a; return a yes by desk/1
            refused: tool call a is not waiting for a client
            refused: tool call a is not waiting for a client
            refused: tool call a is not waiting for a client
            a claimed by desk
            a Succeeded: yes
        given > claim desk/u1/1 a; claim other/1 b
            a claimed by desk/u1
            b claimed by other
    "#]]);
}

#[test]
fn a_restart_starts_the_grace_time_of_every_claim() {
    check(expect![[r#"
        let given = create; tools open; say hi; answer a open; claim one/1 a; +100
        given > recover; return a done by one/9
            a waits for one until +130
            a Succeeded: done
            s2 asks fake/a
            -> model s2, wake +700
        given; recover; +29; recover > claim two/1 a
            refused: tool call a is run by another client
            -> wake +159
        given; recover; +30 > wake
            a Interrupted: the client that ran this call is gone; what came of it is not known
            s2 asks fake/a
            -> model s2, wake +730
    "#]]);
}

#[test]
fn client_calls_are_never_taken_for_a_loop() {
    check(expect![[r#"
        let polls = create; tools poll; say hi; answer a poll; return a; answer b poll; return b; answer c poll; return c; answer d poll; return d; answer e poll; return e
        polls > answer f poll
            s6 answered f=poll{}
            f starts at Client
        create; tools click; say hi; answer a look; done a; answer b click; return b; answer c look; done c; answer d click; return d; answer e look; done e; answer f click; return f; answer g look; done g > answer h look
            s8 answered h=look{}
            h starts at Daemon
            -> run h, wake +600
    "#]]);
}

#[test]
fn a_message_can_change_the_setup() {
    check(expect![[r#"
        create > say hi under prompt=brief tools=open folder=/else
            instructed: Some("brief")
            tools of the client: open
            moved to /else
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        create; tools open; instruct brief; move /else > say hi under prompt=brief tools=open folder=/else
            t1 User: "hi"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
        let busy = create; say one
        busy > queue two under prompt=brief tools=open folder=/else; text 1; answer
            t2 User: "two"
            s1 Text@0 "1"
            s1 answered
            t1 COMPLETED
            instructed: Some("brief")
            tools of the client: open
            moved to /else
            t2 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        busy; queue two under prompt=brief; queue three under prompt=long > text 1; answer; text 2; answer
            s1 Text@0 "1"
            s1 answered
            t1 COMPLETED
            instructed: Some("brief")
            t2 starts, attempt 1
            s2 asks fake/a
            s2 Text@0 "2"
            s2 answered
            t2 COMPLETED
            instructed: Some("long")
            t3 starts, attempt 1
            s3 asks fake/a
            -> model s3, wake +600
        create; later two under prompt=brief; say one; text 1; answer > start t1; fails rejected; start t1
            instructed: Some("brief")
            t1 starts, attempt 1
            s2 asks fake/a
            s2 cut: rejected happened
            t1 stops: rejected: rejected happened
            t1 FAILED rejected: rejected happened
            t1 starts, attempt 2
            s3 asks fake/a
            -> model s3, wake +600
        create > say hi under tools=look
            refused: bad tools: the daemon has a tool look itself
        busy > queue two under tools=look
            refused: bad tools: the daemon has a tool look itself
            -> model s1, wake +600
        create > queue two under prompt=brief
            instructed: Some("brief")
            t1 User: "two"
            t1 starts, attempt 1
            s1 asks fake/a
            -> model s1, wake +600
    "#]]);
}

#[test]
fn a_message_with_a_key_is_added_once() {
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
