//! `read_file` stays inside and reads what is there.

use std::os::unix::fs::symlink;

use quintet_kernel::tool::Risk;
use serde_json::{Value, json};

use crate::bench::{Bench, text};

async fn read(bench: &Bench, input: Value) -> String {
    let output = bench.run("read_file", input).await;
    assert_eq!(output.outcome.ok(), output.outcome.error.is_none());
    if output.outcome.ok() { text(&output) } else { format!("! {}", text(&output)) }
}

#[tokio::test]
async fn a_file_is_read_by_relative_and_absolute_path() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path().join("sub")).unwrap();
    bench.write("sub/a.txt", "one\ntwo\n");
    symlink("sub/a.txt", bench.path().join("link")).unwrap();
    let absolute = bench.path().join("sub/a.txt");
    let paths = ["sub/a.txt", "./sub/../sub/a.txt", "link", absolute.to_str().unwrap()];
    for path in paths {
        assert_eq!(read(&bench, json!({ "path": path })).await, "one\ntwo\n", "{path}");
    }
    let second = json!({ "path": "link", "start_line": 2, "end_line": 2 });
    assert_eq!(read(&bench, second).await, "two\n");
}

#[tokio::test]
async fn a_workspace_behind_a_link_may_be_named_either_way() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path().join("real")).unwrap();
    bench.write("real/a", "x");
    symlink("real", bench.path().join("alias")).unwrap();
    let workspace = bench.path().join("alias");
    let real = bench.path().canonicalize().unwrap().join("real/a");
    for path in [workspace.join("a"), real] {
        let output = bench.run_in(&workspace, "read_file", json!({ "path": path })).await;
        assert_eq!(text(&output), "x");
    }
}

#[tokio::test]
async fn nothing_outside_is_read() {
    let bench = Bench::new();
    bench.write("inside", "x");
    symlink("/etc/passwd", bench.path().join("out")).unwrap();
    symlink("..", bench.path().join("up")).unwrap();
    symlink("/proc/self/root", bench.path().join("root")).unwrap();
    let neighbour = format!("{}x/inside", bench.path().display());
    let inside_out = format!("{}/../../etc/passwd", bench.path().display());
    let escapes = [
        "../x",
        "..",
        "a/../../x",
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "out",
        "up/x",
        "root/etc/passwd",
        "/proc/self/root/etc/passwd",
        &neighbour,
        &inside_out,
    ];
    for path in escapes {
        let got = read(&bench, json!({ "path": path })).await;
        let missing = path == "a/../../x" && got.starts_with("! no such file");
        assert!(missing || got == format!("! path is outside the workspace: {path}"), "{got}");
    }
}

#[tokio::test]
async fn what_is_no_text_file_is_refused() {
    let bench = Bench::new();
    bench.write("binary", b"\x7fELF\0\0");
    let fifo = bench.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let cases = [
        (".", "! path is a directory, not a file: ."),
        (bench.path().to_str().unwrap(), "! path is a directory"),
        ("binary", "! binary file: only text can be read"),
        ("fifo", "! not a regular file: fifo"),
        ("nothing", "! no such file: nothing"),
        ("", "! no such file: "),
        ("a\0b", "! a\0b: "),
    ];
    for (path, expected) in cases {
        let got = read(&bench, json!({ "path": path })).await;
        assert!(got.starts_with(expected), "{path:?}: {got}");
    }
}

#[tokio::test]
async fn a_wrong_argument_is_named() {
    let bench = Bench::new();
    assert_eq!(read(&bench, json!({})).await, "! invalid input: /path is required");
    let got = read(&bench, json!({ "path": "x", "start_line": -1 })).await;
    assert!(got.starts_with("! invalid input: /start_line: "), "{got}");
}

#[tokio::test]
async fn reading_is_no_risk() {
    let got = Bench::new().assess("read_file", json!({ "path": "a/b" })).await;
    assert_eq!((got.risk, got.reversible, got.preview.as_str()), (Risk::Low, true, "read a/b"));
}
