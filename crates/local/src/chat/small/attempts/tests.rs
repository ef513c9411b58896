//! Tests of conversations with failed attempts.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::{Expect, expect};
use quintet_kernel::model::{PromptMessage, assistant_calls};
use serde_json::{Value, json};

use super::shortened_history;
use crate::chat::small::request::tests::{called, user};

fn edit(id: &str, new: &str, ok: bool) -> [PromptMessage; 2] {
    let input = json!({ "path": "a.py", "old": "x = 1", "new": new });
    called(id, "edit_file", input, if ok { "changed" } else { "not there" }, ok)
}

fn run(id: &str, ok: bool) -> [PromptMessage; 2] {
    called(id, "shell", json!({ "command": "python3 t.py" }), "AssertionError", ok)
}

fn read(id: &str) -> [PromptMessage; 2] {
    called(id, "read_file", json!({ "path": "a.py" }), "x = 1\n", true)
}

fn write(id: &str, content: &str) -> [PromptMessage; 2] {
    called(id, "write_file", json!({ "path": "a.py", "content": content }), "written", true)
}

fn check(steps: &[[PromptMessage; 2]], expected: &Expect) {
    let messages = [user("Fix a.py so that t.py passes")].into_iter().chain(steps.concat());
    let messages: Vec<Arc<PromptMessage>> = messages.map(Arc::new).collect();
    let mut text = String::new();
    for message in shortened_history(&messages) {
        let _ = match &*message {
            PromptMessage::Assistant { parts, .. } => {
                let call = assistant_calls(parts).next().unwrap();
                let new = call.input.get("new").and_then(Value::as_str).unwrap_or_default();
                writeln!(text, "> {} {new}", call.tool)
            }
            PromptMessage::Result { text: result, ok, .. } => writeln!(text, "{ok}: {result}"),
            PromptMessage::User(_) | PromptMessage::System(_) => writeln!(text, "asked"),
        };
    }
    expected.assert_eq(&text);
}

#[test]
fn an_undone_change_is_replaced_by_a_note() {
    let steps = [
        read("c1"),
        edit("c2", "x = 2", true),
        run("c3", false),
        write("c4", "x = 1\n"),
        edit("c5", "x = 3", true),
    ];
    check(
        &steps,
        &expect![[r#"
        asked
        > read_file 
        true: x = 1

        false: This was tried: x = 2
        It failed: AssertionError
        The file is as it was before. Find another change.
        > edit_file x = 3
        true: changed
    "#]],
    );
}

#[test]
fn only_the_last_refused_change_is_kept() {
    let steps = [read("c1"), edit("c2", "y", false), edit("c3", "y", false)];
    check(
        &steps,
        &expect![[r#"
        asked
        > read_file 
        true: x = 1

        > edit_file y
        false: not there
    "#]],
    );
}

#[test]
fn successful_changes_are_kept() {
    let steps = [read("c1"), edit("c2", "x = 2", true), run("c3", false), write("c4", "x = 4\n")];
    check(
        &steps,
        &expect![[r#"
        asked
        > read_file 
        true: x = 1

        > edit_file x = 2
        true: changed
        > shell 
        false: AssertionError
        > write_file 
        true: written
    "#]],
    );
    assert!(shortened_history(&[]).is_empty());
}
