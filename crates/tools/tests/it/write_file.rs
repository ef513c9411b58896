//! `write_file` writes whole files, and only inside.

use std::os::unix::fs::{PermissionsExt, symlink};

use quintet_kernel::tool::Risk;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn files_are_created_and_overwritten() {
    let bench = Bench::new();
    let write = |path: &str, content: &str| {
        let input = json!({ "path": path, "content": content });
        let bench = &bench;
        async move { bench.tell("write_file", input).await }
    };
    assert_eq!(write("a/b/c.txt", "one\n").await, "created a/b/c.txt (4 bytes)");
    assert_eq!(write("./a/b/c.txt", "x").await, "overwrote ./a/b/c.txt (1 byte)");
    assert_eq!(write("a/b/c.txt", "x").await, "a/b/c.txt has this content already");
    let absolute = bench.path().join("d");
    assert!(write(absolute.to_str().unwrap(), "").await.starts_with("created "));
    assert_eq!((bench.read("a/b/c.txt").as_str(), bench.read("d").as_str()), ("x", ""));
    // Nothing temporary stays behind.
    assert_eq!(bench.snapshot().len(), 4);
}

#[tokio::test]
async fn permissions_are_kept() {
    let bench = Bench::new();
    bench.write("run", "x");
    let path = bench.path().join("run");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    bench.tell("write_file", json!({ "path": "run", "content": "y" })).await;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
}

#[tokio::test]
async fn nothing_outside_is_written_by_any_tool() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("x"), "old\n").unwrap();
    let bench = Bench::new();
    bench.files(&[("inside/x", "old\n")]);
    symlink(outside.path(), bench.path().join("out")).unwrap();
    symlink(outside.path().join("x"), bench.path().join("file")).unwrap();
    symlink("inside/x", bench.path().join("near")).unwrap();
    symlink("..", bench.path().join("inside/up")).unwrap();
    symlink("../..", bench.path().join("inside/far")).unwrap();
    let before = bench.snapshot();
    let absolute = outside.path().join("x").display().to_string();
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    let (up, far) = (format!("../{name}/x"), format!("inside/far/{name}/x"));
    let dotted = format!("inside/../../{name}/x");
    for path in [
        "out/x",
        "out/new/x",
        "file",
        "near",
        "..",
        ".",
        "new/../../x",
        &absolute,
        &up,
        &far,
        &dotted,
    ] {
        let unified = format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-old\n+new\n");
        let created = format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+new\n");
        let deleted = format!("*** Begin Patch\n*** Delete File: {path}\n*** End Patch");
        let moved = "*** Begin Patch\n*** Update File: inside/x\n*** Move to: ";
        for (tool, input) in [
            ("write_file", json!({ "path": path, "content": "new" })),
            ("edit_file", json!({ "path": path, "old": "old", "new": "new" })),
            ("apply_patch", json!({ "patch": unified })),
            ("apply_patch", json!({ "patch": created })),
            ("apply_patch", json!({ "patch": deleted })),
            ("apply_patch", json!({ "patch": format!("{moved}{path}\n*** End Patch") })),
        ] {
            let shown = bench.assess(tool, input.clone()).await;
            assert!(!shown.preview.contains("+new"), "{tool} {path}: {}", shown.preview);
            let got = bench.tell(tool, input).await;
            assert!(got.starts_with("! "), "{tool} {path}: {got}");
        }
    }
    assert_eq!(bench.snapshot(), before);
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.path().join("x")).unwrap(), "old\n");
}

#[tokio::test]
async fn a_link_to_a_folder_inside_may_be_used() {
    let bench = Bench::new();
    bench.files(&[("real/a", "1\n")]);
    symlink("real", bench.path().join("alias")).unwrap();
    bench.tell("write_file", json!({ "path": "alias/new/b", "content": "2\n" })).await;
    assert_eq!(bench.read("real/new/b"), "2\n");
    let got = bench.tell("write_file", json!({ "path": "real", "content": "" })).await;
    assert_eq!(got, "! path is a directory, not a file: real");
}

#[tokio::test]
async fn the_person_who_is_asked_sees_the_diff_and_what_is_lost() {
    let bench = Bench::new();
    bench.files(&[("kept", "a\nb\n"), ("dirty", "a\n"), (".gitignore", "ignored\n")]);
    bench.commit().await;
    bench.files(&[("dirty", "x\n"), ("new", "x\n"), ("ignored", "x\n"), ("it's", "x\n")]);
    let cases = [
        ("kept", Risk::Medium, true, "--- a/kept\n+++ b/kept\n@@ -1,2 +1 @@\n a\n-b\n"),
        ("fresh", Risk::Medium, true, "--- /dev/null\n+++ b/fresh\n@@ -0,0 +1 @@\n+a\n"),
        ("dirty", Risk::Medium, false, "--- a/dirty\n+++ b/dirty\n@@ -1 +1 @@\n-x\n+a\n"),
        ("new", Risk::High, false, "--- a/new\n+++ b/new\n@@ -1 +1 @@\n-x\n+a\n"),
        ("ignored", Risk::High, false, "--- a/ignored\n+++ b/ignored\n@@ -1 +1 @@\n-x\n+a\n"),
        ("it's", Risk::High, false, "--- a/it's\n+++ b/it's\n@@ -1 +1 @@\n-x\n+a\n"),
        (
            ".git/hooks/x",
            Risk::High,
            true,
            "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+a\n",
        ),
    ];
    for (path, risk, reversible, preview) in cases {
        let got = bench.assess("write_file", json!({ "path": path, "content": "a\n" })).await;
        assert_eq!((got.risk, got.reversible, got.settled), (risk, reversible, None), "{path}");
        assert_eq!(got.preview, preview);
        assert!(got.reasons[0].ends_with(path), "{:?}", got.reasons);
    }
    let reasons = |path: &'static str| {
        let (bench, input) = (&bench, json!({ "path": path, "content": "b\n" }));
        async move { bench.assess("write_file", input).await.reasons }
    };
    assert_eq!(
        reasons("kept").await,
        ["overwrites kept", "what it changes is under version control"]
    );
    assert_eq!(reasons("fresh").await, ["creates fresh"]);
    let got = bench.assess("edit_file", json!({ "path": "new", "old": "x", "new": "y" })).await;
    assert_eq!(got.reasons, ["changes new", "what it changes is not under version control"]);
    assert_eq!((got.risk, got.reversible), (Risk::Medium, true));
    assert!(bench.assess("write_file", json!({ "path": "x" })).await.settled.is_some());
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    let bench = Bench::new();
    for (input, expected) in [
        (json!({ "path": "x" }), "/content is required"),
        (json!({ "path": "x", "content": 1 }), "/content: "),
        (json!({ "path": "x", "content": "", "mode": 1 }), "/mode is unknown"),
    ] {
        let got = bench.tell("write_file", input).await;
        assert!(got.starts_with(&format!("! invalid input: {expected}")), "{got}");
    }
}
