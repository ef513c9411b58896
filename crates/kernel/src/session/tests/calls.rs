//! Tests of tool calls: their order, their ids and loops.

use expect_test::expect;

use super::{Session, check};

#[test]
fn a_call_runs_and_the_model_is_called_again() {
    check(expect![[r#"
        create; say hi > answer c1 look {"p":1}; done c1 found
            s1 answered c1=look{"p":1}
            c1 starts at Daemon
            c1 Succeeded: found
            s2 asks fake/a
            -> model s2, wake +600
        create; say hi > answer c1 look; failed c1 no such file
            s1 answered c1=look{}
            c1 starts at Daemon
            c1 Failed: no such file
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn reads_run_concurrently_and_other_calls_in_order() {
    check(expect![[r#"
        create; say hi > answer a look {} + b look [2] + c edit + d look
            s1 answered a=look{} b=look[2] c=edit{} d=look{}
            a starts at Daemon
            b starts at Daemon
            -> run a, run b, wake +600
        let given = create; say hi; answer a look {"n":1} + b look {"n":2} + c edit + d shell + e look
        given > done b
            b Succeeded:
            -> run a, wake +600
        given > done b; done a
            b Succeeded:
            a Succeeded:
            c starts at Daemon
            -> run c, wake +600
        given > done a; done b; done c
            a Succeeded:
            b Succeeded:
            c starts at Daemon
            c Succeeded:
            d starts at Daemon
            -> run d, wake +600
        given > done a; done b; done c; failed d; done e
            a Succeeded:
            b Succeeded:
            c starts at Daemon
            c Succeeded:
            d starts at Daemon
            d Failed:
            e starts at Daemon
            e Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn a_call_that_cannot_run_fails_at_once() {
    check(expect![[r#"
        create; say hi > answer c1 nonsense {}
            s1 answered c1=nonsense{}
            c1 Failed: unknown tool: nonsense
            s2 asks fake/a
            -> model s2, wake +600
        create; say hi > answer c1 look {"p":
            s1 answered c1=look!"{\"p\":"
            c1 Failed: the arguments are not valid JSON: EOF while parsing a value at line 1 column 5
            s2 asks fake/a
            -> model s2, wake +600
        create; say hi > answer a edit + b nonsense + c look; done a
            s1 answered a=edit{} b=nonsense{} c=look{}
            a starts at Daemon
            a Succeeded:
            b Failed: unknown tool: nonsense
            c starts at Daemon
            -> run c, wake +600
    "#]]);
}

#[test]
fn a_models_call_ids_are_kept_unless_taken() {
    check(expect![[r#"
        create; say hi > answer _ look + c1 look [1] + c1 look [2] + a/b look [3]
            s1 answered k1=look{} c1=look[1] k2=look[2] k3=look[3]
            k1 starts at Daemon
            c1 starts at Daemon
            k2 starts at Daemon
            k3 starts at Daemon
            -> run k1, run c1, run k2, run k3, wake +600
        create; say hi; answer c1 look; done c1 > answer c1 edit
            s2 answered k1=edit{}
            k1 starts at Daemon
            -> run k1, wake +600
    "#]]);
}

// The journal wraps the arguments in a few more levels, so they must stay below the decoder's
// limit.
#[test]
fn arguments_that_are_nested_too_deeply_are_malformed() {
    for depth in [50, 120, 124, 125, 126, 127, 128, 5000] {
        let arguments = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let session = Session::after(&format!("create; say hi; answer c1 look {arguments}"));
        session.check_replay();
    }
}

#[test]
fn a_client_runs_its_own_tools() {
    check(expect![[r#"
        create; say hi > answer a desk + b pen
            s1 answered a=desk{} b=pen{}
            a starts at Client
            b starts at Client
        create; say hi; answer a desk + b pen > done a; done b
            a Succeeded:
            b Succeeded:
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn polling_is_allowed_and_loops_are_not() {
    check(expect![[r#"
        let looks = create; say hi; answer a look; done a; answer b look; done b; answer c look; done c
        looks > answer d look
            s4 answered d=look{}
            d starts at Daemon
            -> run d, wake +600
        looks; answer d look; done d > answer e look
            s5 answered e=look{}
            e Skipped: duplicate tool call: no new info
            s6 asks fake/a
            -> model s6, wake +600
        looks; answer d look; done d > answer e look {"p":1}
            s5 answered e=look{"p":1}
            e starts at Daemon
            -> run e, wake +600
        looks; answer d edit; done d > answer e look; done e; answer f look
            s5 answered e=look{}
            e starts at Daemon
            e Succeeded:
            s6 asks fake/a
            s6 answered f=look{}
            f starts at Daemon
            -> run f, wake +600
        looks; answer d fetch; done d; answer e look; done e > answer f look
            s6 answered f=look{}
            f Skipped: duplicate tool call: no new info
            s7 asks fake/a
            -> model s7, wake +600
        let tails = create; say hi; answer a shell; done a; answer b shell; done b; answer c shell; done c
        tails > answer d shell
            s4 answered d=shell{}
            d starts at Daemon
            -> run d, wake +600
        tails; answer d shell; done d > answer e shell
            s5 answered e=shell{}
            e Skipped: duplicate tool call: no new info
            s6 asks fake/a
            -> model s6, wake +600
        tails; answer d edit; done d > answer e shell; done e; answer f shell
            s5 answered e=shell{}
            e starts at Daemon
            e Succeeded:
            s6 asks fake/a
            s6 answered f=shell{}
            f starts at Daemon
            -> run f, wake +600
        create; say hi; answer a look {"x":1,"y":2}; done a; answer b look {"y":2,"x":1}; done b; answer c look {"x":1,"y":2}; done c; answer d look {"y":2,"x":1}; done d > answer e look {"y":2,"x":1}
            s5 answered e=look{"x":1,"y":2}
            e Skipped: duplicate tool call: no new info
            s6 asks fake/a
            -> model s6, wake +600
        looks; answer d look; done d; answer; say hi > answer e look
            s6 answered e=look{}
            e starts at Daemon
            -> run e, wake +600
    "#]]);
}

#[test]
fn a_call_with_changing_results_is_no_loop() {
    check(expect![[r#"
        let polls = create; say hi; answer a look; done a 1; answer b look; done b 2; answer c look; done c 3; answer d look; done d 4
        polls > answer e look; done e 4; answer f look; done f 4; answer g look
            s5 answered e=look{}
            e starts at Daemon
            e Succeeded: 4
            s6 asks fake/a
            s6 answered f=look{}
            f starts at Daemon
            f Succeeded: 4
            s7 asks fake/a
            s7 answered g=look{}
            g starts at Daemon
            -> run g, wake +600
        let logs = create; say hi; answer a shell; done a 1; answer b shell; done b 1; answer c shell; done c 1; answer d shell; done d 2
        logs > answer e shell
            s5 answered e=shell{}
            e starts at Daemon
            -> run e, wake +600
    "#]]);
}

#[test]
fn a_model_that_continues_with_another_call_is_not_stopped() {
    check(expect![[r#"
        let looks = rules steps=20; create; say hi; answer a look; done a; answer b look; done b; answer c look; done c; answer d look; done d; answer e look
        looks > answer f fetch; done f; answer g look; answer h look
            s6 answered f=fetch{}
            f starts at Daemon
            f Succeeded:
            s7 asks fake/a
            s7 answered g=look{}
            g Skipped: duplicate tool call: no new info
            s8 asks fake/a
            s8 answered h=look{}
            h Skipped: duplicate tool call: no new info
            t1 stops: repeated_call: duplicate tool call: no new info
            t1 FAILED repeated_call: duplicate tool call: no new info
    "#]]);
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    check(expect![[r#"
        let looks = create; say hi; answer a look; done a; answer b look; done b; answer c look; done c; answer d look; done d
        looks; answer e look > answer f look
            s6 answered f=look{}
            f Skipped: duplicate tool call: no new info
            t1 stops: repeated_call: duplicate tool call: no new info
            t1 FAILED repeated_call: duplicate tool call: no new info
        looks; answer e look > answer f edit; done f; answer g look
            s6 answered f=edit{}
            f starts at Daemon
            f Succeeded:
            s7 asks fake/a
            s7 answered g=look{}
            g starts at Daemon
            -> run g, wake +600
    "#]]);
}

#[test]
fn reports_on_a_call_that_does_not_run_are_dropped() {
    check(expect![[r#"
        let given = create; say hi; answer a edit + b edit [1]
        given > done b; done z; assess a; done a; done a; failed a
            a Succeeded:
            b starts at Daemon
            -> run b, wake +600
        create; say hi; answer a edit; done a; answer > done a; assess a
            (nothing)
    "#]]);
}

#[test]
fn memory_is_written_without_approval_and_read_again() {
    check(expect![[r#"
        let given = rules jot ask=write ask=exec verify; create; say hi
        given > answer a look + b jot {"x":1}; done a; done b; answer c look; done c; text ok; answer
            s1 answered a=look{} b=jot{"x":1}
            a starts at Daemon
            a Succeeded:
            b starts at Daemon
            b Succeeded:
            s2 asks fake/a
            s2 answered c=look{}
            c starts at Daemon
            c Succeeded:
            s3 asks fake/a
            s3 Text@0 "ok"
            s3 answered
            t1 COMPLETED
        rules jot ask=memory; create; say hi > answer a jot; assess a
            s1 answered a=jot{}
            a asked
        given > answer a jot; recover
            s1 answered a=jot{}
            a starts at Daemon
            a Interrupted: the daemon stopped while this call was running; how far it got is not known
            t1 resumed
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}
