//! `apply_patch` changes several files, all of them or none.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use quintet_kernel::tool::Risk;
use serde_json::json;
use similar::TextDiff;

use crate::bench::{Bench, text};

const UNIFIED: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n 1\n\
                       -2\n+two\ndiff --git a/new/b.sh b/new/b.sh\nnew file mode 100755\n--- \
                       /dev/null\n+++ b/new/b.sh\n@@ -0,0 +1 @@\n+x\ndiff --git a/c.txt \
                       b/d/e.txt\nrename from c.txt\nrename to d/e.txt\n--- a/c.txt\n+++ \
                       b/d/e.txt\n@@ -1 +1 @@\n-c\n+e\ndiff --git a/gone.txt b/gone.txt\ndeleted \
                       file mode 100644\n--- a/gone.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n";

const ENVELOPE: &str = "*** Begin Patch\n*** Update File: a.txt\n@@\n 1\n-2\n+two\n*** Add File: \
                        new/b.sh\n+x\n*** Update File: c.txt\n*** Move to: \
                        d/e.txt\n@@\n-c\n+e\n*** Delete File: gone.txt\n*** End Patch\n";

fn project() -> Bench {
    let bench = Bench::new();
    bench.files(&[("a.txt", "1\n2\n3\n"), ("c.txt", "c\n"), ("gone.txt", "g\n"), ("sub/x", "")]);
    bench
}

#[tokio::test]
async fn both_forms_change_create_move_and_delete() {
    for (patch, deleted) in
        [(UNIFIED, "D gone.txt\n  hunk 1: applies at line 1\n"), (ENVELOPE, "D gone.txt\n")]
    {
        let bench = project();
        let got = bench.tell("apply_patch", json!({ "patch": patch })).await;
        let changed = "M a.txt\n  hunk 1: applies at line 1\nA new/b.sh\nR c.txt -> d/e.txt\n  hunk \
                       1: applies at line 1\n";
        assert_eq!(got, format!("{changed}{deleted}"));
        assert_eq!(bench.read("a.txt"), "1\ntwo\n3\n");
        assert_eq!(
            (bench.read("new/b.sh").as_str(), bench.read("d/e.txt").as_str()),
            ("x\n", "e\n")
        );
        assert!(!bench.path().join("c.txt").exists() && !bench.path().join("gone.txt").exists());
        let mode = bench.path().join("new/b.sh").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o100 != 0, patch == UNIFIED);
    }
}

#[tokio::test]
async fn one_hunk_that_fails_leaves_everything_as_it_was() {
    let bad = "--- a/a.txt\n+++ b/a.txt\n@@ -3 +3 @@\n-nine\n+9\n";
    for patch in [format!("{UNIFIED}{bad}"), ENVELOPE.replace("-c\n", "-nine\n")] {
        let bench = project();
        let before = bench.snapshot();
        let output = bench.run("apply_patch", json!({ "patch": patch })).await;
        let error = "the patch does not apply (1 part of it); nothing was changed";
        assert_eq!(output.outcome.error.as_deref(), Some(error));
        let report = text(&output);
        assert!(report.starts_with(error) && report.contains("    | nine\n"), "{report}");
        assert_eq!(bench.snapshot(), before);
        let shown = bench.assess("apply_patch", json!({ "patch": patch })).await;
        assert!(shown.settled.is_none() && shown.preview.contains("does not apply"), "{shown:?}");
    }
}

#[tokio::test]
async fn files_that_are_not_as_the_patch_has_them_are_named() {
    let cases = [
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "x: no such file\n"),
        (
            "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+b\n",
            "a.txt: to be created, but it exists already\n",
        ),
        (
            "--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-1\n-2\n",
            "a.txt: to be deleted, but it has more lines than the patch removes\n",
        ),
        (
            "*** Begin Patch\n*** Update File: c.txt\n*** Move to: a.txt\n*** End Patch",
            "c.txt: to be moved to a.txt, which exists already\n",
        ),
        (
            "*** Begin Patch\n*** Delete File: c.txt\n*** Delete File: c.txt\n*** End Patch",
            "c.txt: no such file\n",
        ),
        (
            "*** Begin Patch\n*** Delete File: c.txt\n*** Add File: c.txt\n+x\n*** End Patch",
            "c.txt: the patch changes c.txt more than once\n",
        ),
        (
            "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-1\n+one\n--- sub/../a.txt\n+++ sub/../a.txt\n@@ -2 +2 \
             @@\n-2\n+two\n",
            "sub/../a.txt: the patch has another name for this file, a.txt\n",
        ),
    ];
    for (patch, expected) in cases {
        let bench = project();
        let before = bench.snapshot();
        let got = bench.tell("apply_patch", json!({ "patch": patch })).await;
        assert!(got.starts_with("! ") && got.ends_with(expected), "{got}");
        assert_eq!(bench.snapshot(), before);
    }
}

#[tokio::test]
async fn what_cannot_be_written_takes_back_what_was() {
    let bench = project();
    bench.files(&[("locked", "")]);
    // A file where a folder should be is only noticed when it is written.
    let patch = ENVELOPE.replace("*** End Patch", "*** Add File: locked/x\n+x\n*** End Patch");
    let got = bench.tell("apply_patch", json!({ "patch": patch })).await;
    assert!(got.starts_with("! nothing was changed: "), "{got}");
    assert_eq!((bench.read("a.txt").as_str(), bench.read("c.txt").as_str()), ("1\n2\n3\n", "c\n"));
    assert_eq!(bench.read("gone.txt"), "g\n");
    assert!(!bench.path().join("new/b.sh").exists() && !bench.path().join("d/e.txt").exists());
}

#[tokio::test]
async fn a_file_may_come_up_twice() {
    let bench = project();
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n--- a/./a.txt\n+++ b/./a.txt\n@@ \
                 -3 +3 @@\n-3\n+three\n";
    bench.tell("apply_patch", json!({ "patch": patch })).await;
    assert_eq!(bench.read("a.txt"), "one\n2\nthree\n");
}

#[tokio::test]
async fn the_person_who_is_asked_sees_what_results() {
    let bench = project();
    bench.write("a.txt", "0\n1\n2  \n3\n");
    let got = bench.assess("apply_patch", json!({ "patch": ENVELOPE })).await;
    let start = "--- a/a.txt\n+++ b/a.txt\n@@ -1,4 +1,4 @@\n 0\n 1\n-2  \n+two\n 3\n--- \
                 /dev/null\n+++ b/new/b.sh\n@@ -0,0 +1 @@\n+x\nrename from c.txt\n";
    assert!(got.preview.starts_with(start), "{}", got.preview);
    // The deleted file is not under version control.
    assert_eq!((got.risk, got.reversible), (Risk::High, false));
    bench.commit().await;
    let got = bench.assess("apply_patch", json!({ "patch": ENVELOPE })).await;
    assert_eq!((got.risk, got.reversible), (Risk::Medium, true));
    let reasons = [
        "changes a.txt",
        "creates new/b.sh",
        "moves c.txt to d/e.txt",
        "deletes gone.txt",
        "what it changes is under version control",
    ];
    assert_eq!(got.reasons, reasons);
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    let bench = Bench::new();
    for (input, expected) in [
        (json!({}), "! invalid input: /patch is required"),
        (json!({ "patch": " " }), "! invalid input: `patch` is empty"),
        (json!({ "patch": "x", "dry": true }), "! invalid input: /dry is unknown"),
        (json!({ "patch": "x" }), "! the patch names no file"),
    ] {
        let got = bench.tell("apply_patch", input).await;
        assert!(got.starts_with(expected), "{got}");
    }
}

#[tokio::test]
async fn a_thousand_hunks_in_a_crlf_file_apply_and_are_reported() {
    let bench = Bench::new();
    let line = |n: usize| format!("line {n}\n");
    let changed = |n: usize| if n % 10 == 5 { format!("new {n}\n") } else { line(n) };
    let (old, new): (String, String) =
        ((0..10_000).map(line).collect(), (0..10_000).map(changed).collect());
    bench.write("f", old.replace('\n', "\r\n"));
    let diff = TextDiff::from_lines(&old, &new);
    let patch = diff.unified_diff().context_radius(1).header("a/f", "b/f").to_string();
    let output = bench.run("apply_patch", json!({ "patch": patch })).await;
    assert_eq!(bench.read("f"), new.replace('\n', "\r\n"));
    let report =
        text(&output) + &output.files.iter().map(|file| file.name.as_str()).collect::<String>();
    assert!(report.contains("  hunk 1000: applies at line 9995\n"), "{report}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_edit_written_as_a_diff_gives_the_new_file(
        old in "([abc]{0,2}\n){1,20}[ab]?",
        new in "([abc]{0,2}\n){1,20}[ab]?",
    ) {
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().header("a/f", "b/f").to_string();
        let bench = Bench::new();
        bench.write("f", &old);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(bench.tell("apply_patch", json!({ "patch": patch })));
        prop_assert_eq!(bench.read("f"), new, "{}{}", told, patch);
    }
}
