//! Tests of the workspace description.

use expect_test::expect;

use crate::prompt::system_prompt;

use super::{Session, check};

#[test]
fn the_workspace_is_described_before_the_model_call() {
    check(expect![[r#"
        let started = rules context=100; create; say hi
        started > wake
            (nothing)
            -> survey t1, wake +600
        started > survey TREE=a.rs,b.rs
            context [TREE], 3 tokens
            s1 asks fake/a
            -> model s1, wake +600
        started > survey
            context [], 0 tokens
            s1 asks fake/a
            -> model s1, wake +600
        started > survey TREE=a; survey TREE=b; text hi
            context [TREE], 1 tokens
            s1 asks fake/a
            s1 Text@0 "hi"
            -> model s1, wake +600
        started > cancel
            t1 stops: cancelled
            t1 CANCELLED
        started > recover; survey TREE=a
            t1 resumed
            context [TREE], 1 tokens
            s1 asks fake/a
            -> model s1, wake +600
    "#]]);
}

#[test]
fn a_later_turn_gets_the_changed_context() {
    check(expect![[r#"
        let once = rules context=100; create; say hi; survey TREE=a GIT=M; answer; say more
        once > survey TREE=a GIT=M
            context [], 0 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=b GIT=M
            context [TREE], 1 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=a
            context [GIT], 0 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=b; fails stream_cut; start t2; survey TREE=b
            context [TREE GIT], 1 tokens
            s2 asks fake/a
            s2 cut: stream_cut happened
            t2 stops: stream_cut: stream_cut happened
            t2 FAILED stream_cut: stream_cut happened
            t2 starts, attempt 2
            context [], 0 tokens
            s3 asks fake/a
            -> model s3, wake +600
    "#]]);
}

#[test]
fn the_workspace_is_described_before_a_compaction() {
    check(expect![[r#"
        let full = rules context=100; create; say hi; survey TREE=a; answer [900/1]
        full > say more
            t2 User: "more"
            t2 starts, attempt 1
            -> survey t2, wake +600
        full > say more; survey TREE=b
            t2 User: "more"
            t2 starts, attempt 1
            context [TREE], 1 tokens
            compacting up to m1, 902 tokens
            -> summarize m1, wake +600
        full > say more; survey TREE=b; summary m1 short
            t2 User: "more"
            t2 starts, attempt 1
            context [TREE], 1 tokens
            compacting up to m1, 902 tokens
            compacted 1 up to m1: short
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn context_of_forgotten_messages_moves_to_the_beginning() {
    let started = "rules context=100; create; say hi; survey TREE=a; answer";
    let changed = format!("{started}; say more; survey TREE=b; answer; replace me once");
    let session = Session::after(&changed);
    assert!(
        system_prompt(&session.state).contains("TREE:\nb"),
        "{}",
        system_prompt(&session.state)
    );
}
