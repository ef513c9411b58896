//! Tests of corrected calls.

use std::collections::HashMap;

use quintet_kernel::model::RawToolCall;
use serde_json::{Value, json};

use super::repair;
use crate::chat::small::request::Request;

const FILE: &str = "class A:\n    def add(self, a, b):\n        return a - b\n\n    def old(self):\n        return old\n";

#[track_caller]
fn check(tool: &str, input: Value, expected: (&str, Value)) {
    let files = HashMap::from([("src/a.py".to_owned(), FILE.to_owned())]);
    let request = Request { files, text: "Add something".into(), ..Request::default() };
    let call = RawToolCall { id: String::new(), tool: tool.into(), arguments: input.to_string() };
    let mended = repair(&request, call);
    let input: Value = serde_json::from_str(&mended.arguments).unwrap();
    assert_eq!((mended.tool.as_str(), input), expected);
}

#[test]
fn a_correct_edit_is_unchanged() {
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
fn an_identifier_is_replaced_everywhere() {
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
fn an_addition_is_inserted_after_the_last_lines() {
    let added = "        return old\n\n\ndef more():\n    pass";
    let edit = json!({ "path": "src/a.py", "old": "        return old", "new": added });
    let text = "def more():\n    pass\n";
    let empty = json!({ "path": "src/a.py", "old": "", "new": text });
    check("edit_file", empty, ("edit_file", edit.clone()));
    check("append_file", json!({ "path": "a.py", "text": text }), ("edit_file", edit.clone()));
    let instead = json!({ "path": "src/a.py", "old": "    def add(self, a, b):", "new": text });
    check("edit_file", instead, ("edit_file", edit));
    let unread = json!({ "path": "b.py", "text": text });
    check("append_file", unread, ("read_file", json!({ "path": "b.py" })));
}

#[test]
fn existing_text_is_not_inserted_again() {
    let whole = "def old(self):\n        return old";
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": "def old(self):", "new": whole }),
        ("edit_file", json!({ "path": "src/a.py", "old": whole, "new": whole })),
    );
}

#[test]
fn several_words_are_searched_for_one_by_one() {
    check(
        "search",
        json!({ "query": "requests version" }),
        ("search", json!({ "query": "requests|version", "regex": true, "ignore_case": true })),
    );
    for query in ["port", "def add(", "a: b"] {
        check("search", json!({ "query": query }), ("search", json!({ "query": query })));
    }
}

#[test]
fn an_edit_that_fits_nowhere_is_left_to_the_tool() {
    let edit = json!({ "path": "src/a.py", "old": "nowhere to be found", "new": "y" });
    check("edit_file", edit.clone(), ("edit_file", edit));
    let other = json!({ "command": "ls" });
    check("shell", other.clone(), ("shell", other));
}

#[test]
fn a_first_line_with_a_new_body_replaces_the_old_body() {
    let head = "def add(self, a, b):";
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": head, "new": "def add(self, a, b): return a + b" }),
        (
            "edit_file",
            json!({ "path": "src/a.py", "old": "    def add(self, a, b):\n        return a - b", "new": "    def add(self, a, b): return a + b" }),
        ),
    );
    let typed = json!({ "path": "src/a.py", "old": head, "new": "def add(self, a, b=0):" });
    check("edit_file", typed.clone(), ("edit_file", typed));
}

#[test]
fn a_rename_in_all_files_is_a_command() {
    let command = "grep -rlwI --exclude-dir=.git old . | xargs -r sed -i 's/\\bold\\b/fresh/g'; \
                   grep -rnwI --exclude-dir=.git fresh .";
    let names = json!({ "old": "old()", "new": "fresh" });
    check("rename_everywhere", names, ("shell", json!({ "command": command })));
    let other = json!({ "old": "x'; rm -rf .; '", "new": "y" });
    check("rename_everywhere", other.clone(), ("rename_everywhere", other));
}

#[test]
fn a_file_is_moved_with_the_name_of_its_module() {
    let files = HashMap::from([("util.py".to_owned(), "x = 1\n".to_owned())]);
    let text = "Rename the file util.py to tools.py".into();
    let request = Request { files, text, ..Request::default() };
    let arguments = json!({ "old": "util.py", "new": "tools.py" }).to_string();
    let call = RawToolCall { id: String::new(), tool: "rename_everywhere".into(), arguments };
    let command = repair(&request, call).arguments;
    assert!(command.contains(r#""mv util.py tools.py; grep -rlwI"#), "{command}");
}

#[test]
fn imports_go_to_the_top() {
    let content = format!("import os\n\n{FILE}");
    check(
        "append_file",
        json!({ "path": "src/a.py", "text": "import os\n" }),
        ("write_file", json!({ "path": "src/a.py", "content": content })),
    );
}

#[test]
fn an_early_case_keeps_the_body() {
    let old = "    def add(self, a, b):\n        return a - b";
    let case = "    def add(self, a, b):\n        if not b:\n            return a";
    let kept = format!("{case}\n        return a - b");
    check(
        "edit_file",
        json!({ "path": "src/a.py", "old": old, "new": case }),
        ("edit_file", json!({ "path": "src/a.py", "old": old, "new": kept })),
    );
    let whole = format!("{case}\n        return b");
    let edit = json!({ "path": "src/a.py", "old": old, "new": whole });
    check("edit_file", edit.clone(), ("edit_file", edit));
}
