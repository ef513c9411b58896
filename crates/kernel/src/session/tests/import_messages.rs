//! Tests of what front ends bring: system prompts, folders and imported messages.

use expect_test::expect;

use super::check;

#[test]
fn imported_messages_replace_existing_ones() {
    check(expect![[r#"
        create; say hi; text hello; answer > replace me once | model upon; say again
            forgotten up to m2
            t2 User: "once"
            t3 Assistant: "upon"
            t4 User: "again"
            t4 starts, attempt 1
            s2 asks fake/a
            -> model s2, wake +600
        create; say hi > replace me once
            refused: session already running: sess
            -> model s1, wake +600
        create; say hi; text hello; answer; replace me a > replace me b
            forgotten up to m3
            t3 User: "b"
        create > replace me once
            t1 User: "once"
    "#]]);
}

#[test]
fn turns_are_replaced_from_a_given_one() {
    check(expect![[r#"
        let two = create; say hi; text a; answer; say more; text b; answer
        two > supersede t2; say else
            replaced from t2 on
            t3 User: "else"
            t3 starts, attempt 1
            s3 asks fake/a
            -> model s3, wake +600
        two > supersede t2; supersede t2
            replaced from t2 on
        two > instead t1 again
            replaced from t1 on
            t3 User: "again"
            t3 starts, attempt 1
            s3 asks fake/a
            -> model s3, wake +600
        two; supersede t2 > start t2
            refused: turn not found: turn_20250101t000000z_yx532praweppkrja
        two; say third > supersede t1
            refused: session already running: sess
            -> model s3, wake +600
        two; say third; queue fourth > instead t3 other
            t3 stops: cancelled: replaced
            t4 CANCELLED: replaced
            replaced from t3 on
            t5 User: "other"
            s3 cut: canceled
            t3 CANCELLED: replaced
            t5 starts, attempt 1
            s4 asks fake/a
            -> model s4, wake +600
        two > supersede t9
            refused: turn not found: t9
    "#]]);
}

#[test]
fn system_prompt_and_folder_change_between_turns() {
    check(expect![[r#"
        create > instruct be brief; instruct be brief; instruct
            instructed: Some("be brief")
            instructed: None
        create > move /else; move /else
            moved to /else
        create; say hi > move /else
            refused: session already running: sess
            -> model s1, wake +600
        create; say hi > instruct be brief
            instructed: Some("be brief")
            -> model s1, wake +600
    "#]]);
}

#[test]
fn a_call_that_states_its_duration_gets_that_time() {
    check(expect![[r#"
        let given = create; tools open run within=120 longer=run; say hi
        given > answer a run
            s1 answered a=run{}
            a starts at Client until +75
            -> wake +75
        given > answer a run {"for":300,"wait":5}
            s1 answered a=run{"for":300,"wait":5}
            a starts at Client until +320
            -> wake +320
        given > answer a run {"for":300,"detached":true}
            s1 answered a=run{"detached":true,"for":300}
            a starts at Client until +120
            -> wake +120
        given > answer a run {"for":300} + b open + c run {"for":200}
            s1 answered a=run{"for":300} b=open{} c=run{"for":200}
            a starts at Client until +530
            b starts at Client until +530
            c starts at Client until +530
            -> wake +530
        given > answer a run {"for":1e300}
            s1 answered a=run{"for":1e+300}
            a starts at Client until +75
            -> wake +75
        given > answer a run {"for":-1}
            s1 answered a=run{"for":-1}
            a starts at Client until +75
            -> wake +75
        given > answer a run {"for":100000}
            s1 answered a=run{"for":100000}
            a starts at Client until +900
            -> wake +900
    "#]]);
}
