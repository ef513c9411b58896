//! Tests of formatted command output.

use expect_test::{Expect, expect};
use serde_json::json;

use super::as_text;

fn check(code: i32, stdout: &str, stderr: &str, expected: &Expect) {
    let report = json!({ "cmd": "x", "exit_code": code, "stdout": stdout, "stderr": stderr });
    let notes = "\n[not recorded for an undo: 1 path]";
    expected.assert_eq(&format!("{}\n", as_text(&format!("{report}{notes}"))));
}

#[test]
fn output_is_plain_text() {
    check(
        0,
        "1\n2\n",
        "",
        &expect![[r#"
        1
        2
    "#]],
    );
    check(
        0,
        "",
        "",
        &expect![[r#"
        done
    "#]],
    );
    check(
        2,
        "",
        "no such option\n",
        &expect![[r#"
        failed with exit code 2
        no such option
    "#]],
    );
}

#[test]
fn only_the_last_location_of_a_traceback_is_kept() {
    let trace = "Traceback (most recent call last):\n  File \"/w/a/main.py\", line 9, in <module>\n    \
                 run()\n    ^^^\n  File \"/w/a/b.py\", line 2, in run\n    return os.name\n           ^^\n\
                 NameError: name 'os' is not defined\n";
    check(
        1,
        "",
        trace,
        &expect![[r#"
        failed with exit code 1
        b.py, line 2, in run
            return os.name
        NameError: name 'os' is not defined
        (os is not defined. If it is a module, call append_file with the text "import os": imports are put at the top of the file.)
    "#]],
    );
}

#[test]
fn other_results_are_unchanged() {
    for text in ["", "denied", "{}", "{\"stdout\": 1}\nx"] {
        assert_eq!(as_text(text), text);
    }
}
