//! `edit_file` replaces exactly what it was told to.

use quintet_kernel::tool::Risk;
use serde_json::json;

use crate::bench::Bench;

const OLD: &str = "one\ntwo\r\ntwo\none two\n";

#[tokio::test]
async fn a_text_is_replaced() {
    let cases = [
        (json!({ "old": "two\none", "new": "X" }), "one\ntwo\r\nX two\n", "1 place, at line 3"),
        (json!({ "old": "two\r\n", "new": "" }), "one\ntwo\none two\n", "1 place, at line 2"),
        (
            json!({ "old": "two", "new": "2", "replace_all": true }),
            "one\n2\r\n2\none 2\n",
            "3 places, at lines 2, 3, 4",
        ),
    ];
    for (mut input, new, told) in cases {
        let bench = Bench::new();
        bench.write("f", OLD);
        input["path"] = "f".into();
        assert_eq!(bench.tell("edit_file", input).await, format!("changed f in {told}"));
        assert_eq!(bench.read("f"), new);
    }
}

#[tokio::test]
async fn what_is_not_there_once_is_not_replaced() {
    let bench = Bench::new();
    bench.write("f", OLD);
    bench.write("binary", "a\0b");
    let cases = [
        (json!({ "path": "f", "old": "three", "new": "" }), "`old` does not occur in f"),
        (
            json!({ "path": "f", "old": "two\n two", "new": "" }),
            "`old` does not occur in f; it does with other white space or line ends",
        ),
        (
            json!({ "path": "f", "old": "two", "new": "" }),
            "`old` occurs 3 times in f, at lines 2, 3, 4; give more of the text around it, or set \
             `replace_all`",
        ),
        (json!({ "path": "g", "old": "a", "new": "" }), "no such file: g"),
        (
            json!({ "path": "binary", "old": "a", "new": "" }),
            "binary file: only text can be edited: binary",
        ),
        (json!({ "path": "f", "old": "", "new": "" }), "invalid input: `old` is empty"),
        (
            json!({ "path": "f", "old": "a", "new": "a" }),
            "invalid input: `new` is the same as `old`",
        ),
        (json!({ "path": "f", "new": "a" }), "invalid input: /old is required"),
    ];
    for (input, expected) in cases {
        assert_eq!(bench.tell("edit_file", input).await, format!("! {expected}"));
    }
    assert_eq!(bench.read("f"), OLD);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept() {
    let bench = Bench::new();
    bench.write("f", b"caf\xe9 one\n");
    bench.tell("edit_file", json!({ "path": "f", "old": "one", "new": "two" })).await;
    assert_eq!(std::fs::read(bench.path().join("f")).unwrap(), b"caf\xe9 two\n");
}

#[tokio::test]
async fn the_person_who_is_asked_sees_the_diff() {
    let bench = Bench::new();
    bench.write("f", "a\nb\n");
    let input = json!({ "path": "f", "old": "b", "new": "c" });
    let got = bench.assess("edit_file", input).await;
    assert_eq!((got.risk, got.reversible), (Risk::Medium, true));
    assert_eq!(got.reasons, ["changes f", "what it changes is not under version control"]);
    assert_eq!(got.preview, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    // By the time it runs it may apply, so somebody has to be asked.
    let got = bench.assess("edit_file", json!({ "path": "f", "old": "x", "new": "c" })).await;
    assert!(got.settled.is_none() && got.reasons[0].contains("does not occur"), "{got:?}");
}
