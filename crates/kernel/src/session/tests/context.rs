//! What a model is told of the workspace.

use expect_test::expect;

use crate::prompt::system_prompt;

use super::{Session, check};

#[test]
fn the_workspace_is_looked_at_before_the_model_is_asked() {
    check(expect![[r#"
        let told = rules context=100; create; say hi
        told > wake
            (nothing)
            -> survey t1, wake +600
        told > survey TREE=a.rs,b.rs
            told of [TREE], 3 tokens
            s1 asks fake/a
            -> model s1, wake +600
        told > survey
            told of [], 0 tokens
            s1 asks fake/a
            -> model s1, wake +600
        told > survey TREE=a; survey TREE=b; text hi
            told of [TREE], 1 tokens
            s1 asks fake/a
            s1 Text@0 "hi"
            -> model s1, wake +600
        told > cancel
            t1 stops: cancelled
            t1 CANCELLED
        told > recover; survey TREE=a
            t1 resumed
            told of [TREE], 1 tokens
            s1 asks fake/a
            -> model s1, wake +600
    "#]]);
}

#[test]
fn a_later_turn_gets_the_changed_context() {
    check(expect![[r#"
        let once = rules context=100; create; say hi; survey TREE=a GIT=M; answer; say more
        once > survey TREE=a GIT=M
            told of [], 0 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=b GIT=M
            told of [TREE], 1 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=a
            told of [GIT], 0 tokens
            s2 asks fake/a
            -> model s2, wake +600
        once > survey TREE=b; fails stream_cut; start t2; survey TREE=b
            told of [TREE GIT], 1 tokens
            s2 asks fake/a
            s2 cut: stream_cut happened
            t2 stops: stream_cut: stream_cut happened
            t2 FAILED stream_cut: stream_cut happened
            t2 starts, attempt 2
            told of [], 0 tokens
            s3 asks fake/a
            -> model s3, wake +600
    "#]]);
}

#[test]
fn the_workspace_is_looked_at_before_a_compaction() {
    check(expect![[r#"
        let full = rules context=100; create; say hi; survey TREE=a; answer [900/1]
        full > say more
            t2 User: "more"
            t2 starts, attempt 1
            -> survey t2, wake +600
        full > say more; survey TREE=b
            t2 User: "more"
            t2 starts, attempt 1
            told of [TREE], 1 tokens
            compacting up to m1, 902 tokens
            -> summarize m1, wake +600
        full > say more; survey TREE=b; summary m1 short
            t2 User: "more"
            t2 starts, attempt 1
            told of [TREE], 1 tokens
            compacting up to m1, 902 tokens
            compacted 1 up to m1: short
            s2 asks fake/a
            -> model s2, wake +600
    "#]]);
}

#[test]
fn context_of_forgotten_messages_moves_to_the_beginning() {
    let told = "rules context=100; create; say hi; survey TREE=a; answer";
    let changed = format!("{told}; say more; survey TREE=b; answer; replace me once");
    let session = Session::after(&changed);
    assert!(
        system_prompt(&session.state).contains("TREE:\nb"),
        "{}",
        system_prompt(&session.state)
    );
}
