//! Tests of prompts with workspace context, reverted changes and reviews.

use expect_test::expect;

use super::check;

#[test]
fn the_workspace_precedes_the_conversation_and_its_changes_are_within() {
    check(expect![[r#"
        let once = rules context=100; create as Be kind; say hi; survey TREE=a GIT=M; text Hello; answer
        once; say more; survey TREE=a GIT=M
            fake/a: Be kind | The workspace is /work. | Workspace context: TREE: a | GIT: M
            user: "hi"
            assistant: "Hello"
            user: "more"
            7 tools
        once; say more; survey TREE=b; text Yes; answer; say on; survey TREE=b
            fake/a: Be kind | The workspace is /work. | Workspace context: TREE: a | GIT: M
            user: "hi"
            assistant: "Hello"
            user: "Workspace context, changed since:\nTREE:\nb\n\nGIT: nothing any more"
            user: "more"
            assistant: "Yes"
            user: "on"
            7 tools
        once; say more; survey TREE=b; text Yes; answer; compact; summary m4 short; say on; survey TREE=c
            fake/a: Be kind | The workspace is /work. | Workspace context: TREE: b
            user: "Summary of the conversation so far:\nshort"
            user: "Workspace context, changed since:\nTREE:\nc"
            user: "on"
            7 tools
    "#]]);
}

#[test]
fn the_prompt_lists_reverted_changes() {
    check(expect![[r#"
        create; say hi; answer c1 edit; changed c1 a:1~2 b:~3; text Done; answer; revert t1; reverted t1; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" c1=edit{}
              c1=edit ok: changed
            assistant: "Done"
            user: "I undid these changes to files: a, b."
            user: "more"
            7 tools
        create; say hi; answer c1 edit; changed c1 a:1~2; text Done; answer; revert t1; revert_failed t1 no; say more
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "" c1=edit{}
              c1=edit ok: changed
            assistant: "Done"
            user: "more"
            7 tools
    "#]]);
}

#[test]
fn a_reviewer_sees_the_change() {
    check(expect![[r#"
        rules review=auto; create; say hi; text I edit; answer c1 edit; assess c1
            fake/a: The workspace is /work.
            user: "hi"
            assistant: "I edit" c1=edit{}
              c1=edit not ok: this call has no result
            user: "Before the change below is made, read it again as a careful colleague who did not write it"…
            7 tools
    "#]]);
}
