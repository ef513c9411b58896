//! `search` finds lines.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::bench::Bench;

fn project() -> Bench {
    let bench = Bench::new();
    bench.files(&[
        (".gitignore", "ignored\n"),
        (".git/x", "needle\n"),
        ("a.txt", "one\nNeedle two\nthree\nfour\nfive\nneedle (six)\n"),
        ("ignored", "needle\n"),
        ("src/b.rs", "// needle\r\n"),
        ("src/c.rs", "nothing\n"),
    ]);
    bench.write("binary", b"needle\n\0needle\n");
    bench
}

#[tokio::test]
async fn lines_are_found() {
    let bench = project();
    symlink("/etc/passwd", bench.path().join("out")).unwrap();
    let cases = [
        (json!({ "query": "needle" }), "a.txt:6:needle (six)\nsrc/b.rs:1:// needle\n"),
        (json!({ "query": "needle (" }), "a.txt:6:needle (six)\n"),
        (json!({ "query": "needle$" }), "no matches"),
        (json!({ "query": "needle$", "regex": true }), "src/b.rs:1:// needle\n"),
        (json!({ "query": "NEEDLE T", "ignore_case": true }), "a.txt:2:Needle two\n"),
        (json!({ "query": "needle", "glob": "*.rs" }), "src/b.rs:1:// needle\n"),
        (json!({ "query": "needle", "glob": "src/*" }), "src/b.rs:1:// needle\n"),
        (json!({ "query": "root:" }), "no matches"),
        (
            json!({ "query": "[Nn]eedle", "regex": true, "context": 1, "glob": "a.txt" }),
            "a.txt-1-one\na.txt:2:Needle two\na.txt-3-three\n--\na.txt-5-five\n\
             a.txt:6:needle (six)\n",
        ),
        (
            json!({ "query": "e", "max_results": 1, "context": 1, "glob": "a.*" }),
            "a.txt:1:one\n[4 more matches in 1 file left out]\n",
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(bench.tell("search", input.clone()).await, expected, "{input}");
    }
}

#[tokio::test]
async fn the_usual_number_is_fifty() {
    let bench = Bench::new();
    bench.write("a", "x\n".repeat(60));
    let got = bench.tell("search", json!({ "query": "x" })).await;
    assert!(got.ends_with("a:50:x\n[10 more matches in 1 file left out]\n"), "{got}");
}

#[tokio::test]
async fn many_files_are_told_in_order_whoever_searched_them() {
    let bench = Bench::new();
    let name = |n: usize| format!("{}/{n:04}", n / 100);
    let text = |n: usize| {
        if n.is_multiple_of(3) { "x\ny x\nz\nx".to_owned() } else { "nothing\n".to_owned() }
    };
    let files: Vec<_> = (0..1000).map(|n| (name(n), text(n))).collect();
    bench.files(&files.iter().map(|(name, text)| (&**name, &**text)).collect::<Vec<_>>());
    let mut lines: Vec<String> = Vec::new();
    for n in (0..1000).step_by(3) {
        lines.extend(
            [(1, "x"), (2, "y x"), (4, "x")].map(|(at, text)| format!("{}:{at}:{text}\n", name(n))),
        );
    }
    for most in [1, 2, 3, 40, 500, 999, 1000] {
        let left = lines.len() - most;
        let left_files = lines.len().div_ceil(3) - most / 3;
        let plural = if left == 1 { "" } else { "es" };
        let files =
            if left_files == 1 { "1 file".to_owned() } else { format!("{left_files} files") };
        let expected =
            format!("{}[{left} more match{plural} in {files} left out]\n", lines[..most].concat());
        for _ in 0..3 {
            assert_eq!(
                bench.tell("search", json!({ "query": "x", "max_results": most })).await,
                expected
            );
        }
    }
}

#[tokio::test]
async fn long_lines_are_cut_between_characters() {
    let bench = Bench::new();
    bench.write("a", format!("x{}\n", "é".repeat(500)));
    let got = bench.tell("search", json!({ "query": "x" })).await;
    assert_eq!(got, format!("a:1:x{} [602 more bytes]\n", "é".repeat(199)));
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    let bench = Bench::new();
    let cases: [(Value, &str); 6] = [
        (json!({}), "/query is required"),
        (json!({ "query": "" }), "`query` is empty"),
        (json!({ "query": "(", "regex": true }), "`query`: "),
        (json!({ "query": "a\nb" }), "`query`: "),
        (json!({ "query": "a", "glob": "[" }), "`glob`: "),
        (json!({ "query": "a", "case": true }), "/case is unknown"),
    ];
    for (input, expected) in cases {
        let got = bench.tell("search", input.clone()).await;
        assert!(got.starts_with(&format!("! invalid input: {expected}")), "{input}: {got}");
    }
}
