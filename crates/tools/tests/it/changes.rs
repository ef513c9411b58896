//! What file tools changed is recorded with their calls.

use std::os::unix::fs::{PermissionsExt, symlink};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent};
use serde_json::{Value, json};

use crate::bench::{Bench, changed};

/// Runs a tool and shows what it recorded.
async fn recorded(bench: &Bench, tool: &str, input: Value) -> Vec<String> {
    changed(&bench.run(tool, input).await)
}

#[tokio::test]
async fn every_file_tool_records_what_it_changed() {
    let bench = Bench::new();
    bench.files(&[("a", "one\n"), ("gone", "x\n"), ("from", "y\n")]);
    let cases = [
        ("write_file", json!({ "path": "./src/../src/new", "content": "n" }), "src/new: - > n"),
        ("write_file", json!({ "path": "a", "content": "two\n" }), "a: one\n > two\n"),
        ("write_file", json!({ "path": "a", "content": "two\n" }), ""),
        ("edit_file", json!({ "path": "a", "old": "two", "new": "3" }), "a: two\n > 3\n"),
        ("edit_file", json!({ "path": "a", "old": "nowhere", "new": "3" }), ""),
        (
            "apply_patch",
            json!({ "patch": "*** Begin Patch\n*** Delete File: gone\n*** Update File: from\n\
                              *** Move to: to/x\n@@\n-y\n+z\n*** End Patch" }),
            "from: y\n > -; gone: x\n > -; to/x: - > z\n; to: - > /",
        ),
    ];
    std::fs::create_dir(bench.path().join("src")).unwrap();
    for (tool, input, expected) in cases {
        let mut got = recorded(&bench, tool, input).await;
        got.sort();
        assert_eq!(got.join("; "), expected, "{tool}");
    }
    let absolute = bench.path().join("b").display().to_string();
    let got = recorded(&bench, "write_file", json!({ "path": absolute, "content": "" })).await;
    assert_eq!(got, ["b: - > "]);
}

#[tokio::test]
async fn a_change_has_sizes_and_permissions() {
    let bench = Bench::new();
    bench.write("run", "old");
    let mode = |mode| PermissionsExt::from_mode(mode);
    std::fs::set_permissions(bench.path().join("run"), mode(0o751)).unwrap();
    let output = bench.run("write_file", json!({ "path": "run", "content": "new!" })).await;
    let content = |text: &str| {
        let (size, body) = (text.len() as u64, Some(BlobBody::Bytes(text.as_bytes().to_vec())));
        Some(FileContent { body, size, mode: Some(0o751), shape: FileKind::File })
    };
    let expected =
        ChangedFile { path: "run".into(), before: content("old"), after: content("new!") };
    assert_eq!(output.changes, [expected]);
}

#[tokio::test]
async fn a_file_has_one_name_whatever_way_leads_to_it() {
    let bench = Bench::new();
    bench.files(&[("real/a", "1")]);
    symlink("real", bench.path().join("alias")).unwrap();
    let got = recorded(&bench, "write_file", json!({ "path": "alias/a", "content": "2" })).await;
    assert_eq!(got, ["real/a: 1 > 2"]);
}

#[tokio::test]
async fn what_stays_changed_when_a_patch_fails_half_way_is_recorded() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("d", "2\n")]);
    // The folder for the new file takes the place of the old one, whose name is then not free.
    let long = "x".repeat(300);
    let patch = format!(
        "*** Begin Patch\n*** Update File: a\n@@\n-1\n+3\n*** Delete File: d\n*** Add File: \
         d/{long}\n+x\n*** End Patch"
    );
    let output = bench.run("apply_patch", json!({ "patch": patch })).await;
    let error = output.outcome.error.clone().unwrap();
    assert!(error.ends_with("these files stay changed: d"), "{error}");
    assert_eq!(changed(&output), ["d: 2\n > /"]);
    assert_eq!(bench.read("a"), "1\n");
}

#[tokio::test]
async fn what_a_call_did_is_known_even_if_it_was_cut_off() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("c", "3\n")]);
    assert_eq!(bench.cut_off().await, None);
    bench.run("edit_file", json!({ "path": "a", "old": "1", "new": "one" })).await;
    assert_eq!(bench.cut_off().await.unwrap(), ["a: 1\n > one\n"]);
    let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: d\n@@\n-one\n+two\n\
                 *** Delete File: b\n*** Add File: e\n+new\n*** End Patch\n";
    bench.run("apply_patch", json!({ "patch": patch })).await;
    let expected = ["a: one\n > -", "d: - > two\n", "b: 2\n > -", "e: - > new\n"];
    assert_eq!(bench.cut_off().await.unwrap(), expected);
    // As if it had come no further than this.
    bench.files(&[("b", "2\n"), ("a", "one\n")]);
    std::fs::remove_file(bench.path().join("e")).unwrap();
    assert_eq!(bench.cut_off().await.unwrap(), ["d: - > two\n"]);
    bench.over();
    assert_eq!(bench.cut_off().await, None);
}
