//! Tests of reverting file changes.

use expect_test::expect;

use super::check;

#[test]
fn a_turn_can_be_undone_once() {
    check(expect![[r#"
        let changed = create; say hi; answer c1 edit; changed c1 a:1~2 b:~3; answer
        changed > revert t1
            t1 is to be undone
            -> revert t1
        changed > revert t1; reverted t1
            t1 is to be undone
            t1 undone: a b
        changed > revert t1; revert_failed t1 b was changed since
            t1 is to be undone
            t1 not undone: b was changed since
        changed > revert t1; revert_failed t1 busy; revert t1; reverted t1
            t1 is to be undone
            t1 not undone: busy
            t1 is to be undone
            t1 undone: a b
        changed > revert t1; reverted t1; revert t1
            t1 is to be undone
            t1 undone: a b
            refused: the changes of turn turn_20250101t000000z_h4ql634h42wveh3k are undone already
        changed > revert t1; reverted t1; reverted t1
            t1 is to be undone
            t1 undone: a b
        changed > reapply t1
            refused: the changes of turn turn_20250101t000000z_h4ql634h42wveh3k are not undone
        changed > revert t1; reverted t1; reapply t1; reverted t1; revert t1
            t1 is to be undone
            t1 undone: a b
            t1 is to be undone
            t1 made again: a b
            t1 is to be undone
            -> revert t1
        changed > reverted t1
            (nothing)
        changed > revert t1; say more
            t1 is to be undone
            refused: session already running: sess
            -> revert t1
        changed > revert t1; recover
            t1 is to be undone
            -> revert t1
    "#]]);
}

#[test]
fn a_turn_without_changes_cannot_be_reverted() {
    check(expect![[r#"
        let changed = create; say hi; answer c1 edit; changed c1 a:1~2; answer
        changed > revert t9
            refused: turn not found: t9
        create; say hi; answer > revert t1
            refused: turn turn_20250101t000000z_h4ql634h42wveh3k changed no files
        create; say hi; answer c1 edit; changed c1 a:1~2; answer c2 edit {"x":1}; changed c2 a:2~1; answer > revert t1
            refused: turn turn_20250101t000000z_h4ql634h42wveh3k changed no files
        create; say hi; answer c1 edit > revert t1
            refused: session already running: sess
            -> run c1, wake +600
    "#]]);
}
