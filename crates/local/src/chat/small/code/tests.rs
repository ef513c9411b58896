//! Tests of code that was shown instead of written.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::shown_edit;
use crate::chat::small::request::Request;

const FILE: &str =
    "import os\n\n\ndef add(a, b):\n    return a - b\n\n\ndef double(a):\n    return a * 2\n";

fn edit(answer: &str) -> Option<(String, Value)> {
    let files = HashMap::from([
        ("calc.py".to_owned(), FILE.to_owned()),
        ("test_calc.py".to_owned(), "from calc import add\n\nassert add(1, 2) == 3\n".to_owned()),
    ]);
    let edit = shown_edit(&Request { files, ..Request::default() }, answer)?;
    Some((edit.tool, serde_json::from_str(&edit.arguments).unwrap()))
}

#[test]
fn a_function_replaces_the_one_of_its_name() {
    let answer =
        "The bug is the sign:\n\n```python\ndef add(a, b):\n    return a + b\n```\nThat is all.";
    let old = "def add(a, b):\n    return a - b";
    let new = "def add(a, b):\n    return a + b";
    let input = json!({ "path": "calc.py", "old": old, "new": new });
    assert_eq!(edit(answer), Some(("edit_file".into(), input)));
}

#[test]
fn a_whole_file_replaces_the_file() {
    let whole = FILE.replace("a - b", "a + b");
    let input = json!({ "path": "calc.py", "content": whole });
    assert_eq!(
        edit(&format!("Here it is:\n```python\n{whole}```")),
        Some(("write_file".into(), input))
    );
}

#[test]
fn ambiguous_code_is_no_edit() {
    assert_eq!(edit("Change the sign."), None);
    assert_eq!(edit("```sh\npython3 test_calc.py\n```"), None);
    assert_eq!(edit("```python\ndef add(a, b):\n    return a - b\n```"), None, "nothing differs");
    assert_eq!(edit("```python\ndef fresh():\n    pass\n```"), None);
    assert_eq!(edit("```python\ndef add(a, b):"), None, "the fence is not closed");
}

#[test]
fn imports_are_added_and_examples_are_not() {
    let answer = "```python\nimport math\n\ndef double(a):\n    return math.fsum([a, a])\n\nprint(double(2))\n```";
    let content = format!("import math\n{}", FILE.replace("a * 2", "math.fsum([a, a])"));
    let input = json!({ "path": "calc.py", "content": content });
    assert_eq!(edit(answer), Some(("write_file".into(), input)));
}

#[test]
fn several_functions_replace_those_of_their_names() {
    let answer =
        "```python\ndef double(a):\n    return a + a\n\n\ndef add(a, b):\n    return a + b\n```";
    let content = FILE.replace("a * 2", "a + a").replace("a - b", "a + b");
    let input = json!({ "path": "calc.py", "content": content });
    assert_eq!(edit(answer), Some(("write_file".into(), input)));
}
