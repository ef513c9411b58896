//! Calls that were nearly right.

use std::collections::HashMap;

use quintet_kernel::model::AskedCall;
use serde_json::{Value, json};

use super::mend;
use crate::chat::small::request::Request;

const FILE: &str = "class A:\n    def add(self, a, b):\n        return a - b\n\n    def old(self):\n        return old\n";

#[track_caller]
fn check(tool: &str, input: Value, expected: (&str, Value)) {
    let files = HashMap::from([("src/a.py".to_owned(), FILE.to_owned())]);
    let request = Request { files, ..Request::default() };
    let call = AskedCall { id: String::new(), tool: tool.into(), arguments: input.to_string() };
    let mended = mend(&request, call);
    let input: Value = serde_json::from_str(&mended.arguments).unwrap();
    assert_eq!((mended.tool.as_str(), input), expected);
}

#[test]
fn an_edit_that_fits_is_left_alone() {
    let edit = json!({ "path": "src/a.py", "old": "a - b", "new": "a + b" });
    check("edit_file", edit.clone(), ("edit_file", edit));
}

#[test]
fn white_space_is_taken_from_the_file() {
    check(
        "edit_file",
        json!({ "path": "a.py", "old": "def add(self, a, b):\n    return a - b", "new": "def add(self, a, b):\n    return a + b" }),
        (
            "edit_file",
            json!({ "path": "src/a.py", "old": "    def add(self, a, b):\n        return a - b", "new": "    def add(self, a, b):\n        return a + b" }),
        ),
    );
}

#[test]
fn a_name_is_changed_everywhere() {
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": "old", "new": "fresh" }),
        (
            "edit_file",
            json!({ "path": "src/a.py", "old": "old", "new": "fresh", "replace_all": true }),
        ),
    );
}

#[test]
fn a_file_that_was_not_read_is_read_before_it_is_changed() {
    let edit = json!({ "path": "./b.py", "old": "x", "new": "y" });
    check("edit_file", edit, ("read_file", json!({ "path": "b.py" })));
}

#[test]
fn what_replaces_nothing_is_added_at_the_end() {
    let content = format!("{}\n\n\ndef more():\n    pass\n", FILE.trim_end());
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": "", "new": "def more():\n    pass\n" }),
        ("write_file", json!({ "path": "src/a.py", "content": content })),
    );
}

#[test]
fn what_fits_nowhere_is_left_for_the_tool_to_refuse() {
    let edit = json!({ "path": "src/a.py", "old": "nowhere to be found", "new": "y" });
    check("edit_file", edit.clone(), ("edit_file", edit));
    let other = json!({ "command": "ls" });
    check("shell", other.clone(), ("shell", other));
}

#[test]
fn a_first_line_that_brings_a_new_body_replaces_the_old_one() {
    let head = "def add(self, a, b):";
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": head, "new": "def add(self, a, b): return a + b" }),
        (
            "edit_file",
            json!({ "path": "src/a.py", "old": "    def add(self, a, b):\n        return a - b", "new": "    def add(self, a, b): return a + b" }),
        ),
    );
    let named = json!({ "path": "src/a.py", "old": head, "new": "def sum(self, a, b):" });
    check("edit_file", named.clone(), ("edit_file", named));
}
