//! Tests of grammars.

use expect_test::expect;

use super::{Choice, grammar};
use crate::chat::small::tests::tool;

#[test]
fn a_call_has_the_arguments_of_its_tool_in_a_useful_order() {
    let tools = [tool("edit_file", &["new", "old", "path"]), tool("now", &[])];
    let text = grammar(&tools, Choice::Either);
    let call = text.lines().find(|line| line.starts_with("call ::=")).unwrap();
    expect![[r#"call ::= "<tool_call>\n{\"name\": \"" ( "edit_file\", \"arguments\": {\"path\": " string ", \"old\": " string ", \"new\": " string "}" | "now\", \"arguments\": {" "}" | "answer\", \"arguments\": {\"text\": " string "}" ) "}\n</tool_call>""#]]
        .assert_eq(call);
    assert!(text.starts_with("root ::= call | words call?\n"));
}

#[test]
fn a_reminder_requires_a_call_and_a_loop_text() {
    let tools = [tool("shell", &["command"])];
    let call = grammar(&tools, Choice::Call);
    assert!(call.starts_with("root ::= call\n") && !call.contains("answer"), "{call}");
    assert!(!grammar(&tools, Choice::Words).contains("call ::="));
}
