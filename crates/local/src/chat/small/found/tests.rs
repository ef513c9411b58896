//! Tests of formatted search results.

use expect_test::{Expect, expect};

use super::as_sentences;

fn check(result: &str, expected: &Expect) {
    expected.assert_eq(&format!("{}\n", as_sentences(result)));
}

#[test]
fn definitions_come_first_and_lines_name_their_definition() {
    check(
        "a-b/uses.py:1:from rows import load\n--\na-b/uses.py-7-def count(path):\na-b/uses.py:8:    return len(load(path))\n\
         rows.py:3:def load(path):\nrows.py-4-    return path\n[3 more matches in 1 file left out]\n",
        &expect![[r#"
            rows.py, line 3 (definition): def load(path):
            a-b/uses.py, line 1 (import): from rows import load
            a-b/uses.py, line 8 (in def count): return len(load(path))
            [3 more matches in 1 file left out]
        "#]],
    );
}

#[test]
fn other_results_are_unchanged() {
    check(
        "no matches",
        &expect![[r#"
        no matches
    "#]],
    );
    check(
        "x: y\n-:\n:1:",
        &expect![[r#"
        x: y
        -:
        :1:
    "#]],
    );
}
