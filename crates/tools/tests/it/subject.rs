//! What rules and remembered answers get to see of calls.

use std::os::unix::fs::symlink;

use quintet_kernel::tool::CallSubject;
use serde_json::{Value, json};

use crate::bench::Bench;

fn workspace() -> Bench {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("src/b", "2\n"), ("src/sub/c", "3\n"), (".env", "s\n")]);
    symlink("src", bench.path().join("alias")).unwrap();
    symlink(".env", bench.path().join("innocent")).unwrap();
    bench
}

async fn subject(bench: &Bench, tool: &str, input: Value) -> CallSubject {
    bench.assess(tool, input).await.subject
}

#[tokio::test]
async fn changes_name_their_files_and_folder() {
    let bench = workspace();
    let inside = bench.path().join("src/new").display().to_string();
    let top = "changes files in the workspace's top folder";
    let write = |path: &str| ("write_file", json!({ "path": path, "content": "x" }));
    let edit =
        |path: &str, old: &str| ("edit_file", json!({ "path": path, "old": old, "new": "x" }));
    let patch = |text: &str| {
        let patch = format!("*** Begin Patch\n{text}\n*** End Patch");
        ("apply_patch", json!({ "patch": patch }))
    };
    let cases = [
        (edit("a", "1"), "a", Some(top)),
        (write("new"), "new", Some(top)),
        (edit("./src/../src//b", "2"), "src/b", Some("changes files in src/")),
        (write(&inside), "src/new", Some("changes files in src/")),
        // A rule about either name is about the call.
        (edit("alias/b", "2"), "alias/b src/b", Some("changes files in src/")),
        (write("alias/x/new"), "alias/x/new src/x/new", Some("changes files in src/x/")),
        // What cannot be done now may be when it runs.
        (edit("src/b", "nowhere"), "src/b", Some("changes files in src/")),
        (edit("src/missing", "y"), "src/missing", Some("changes files in src/")),
        (
            patch(
                "*** Update File: src/b\n*** Move to: src/sub/d\n@@\n-2\n+x\n*** Add File: src/e\n+y",
            ),
            "src/b src/e src/sub/d",
            Some("changes files in src/"),
        ),
        (patch("*** Update File: src/b\n*** Move to: d\n@@\n-nowhere\n+x"), "d src/b", Some(top)),
        // What can lose work is asked about each time.
        (write("a"), "a", None),
        (patch("*** Delete File: src/sub/c"), "src/sub/c", None),
        (write(".git/config"), ".git/config", None),
    ];
    for ((tool, input), paths, similar) in cases {
        let got = subject(&bench, tool, input.clone()).await;
        assert_eq!(got.paths.join(" "), paths, "{input}");
        assert_eq!(got.similar.as_deref(), similar, "{input}");
        assert!(!got.opaque && got.commands.is_empty(), "{input}");
    }
}

#[tokio::test]
async fn looking_names_what_is_looked_at() {
    let bench = workspace();
    let top = "looks into the workspace's top folder";
    let cases = [
        ("read_file", json!({ "path": "src/b" }), "src/b", "reads files in src/"),
        (
            "read_file",
            json!({ "path": "innocent" }),
            ".env innocent",
            "reads files in the workspace's top folder",
        ),
        ("read_file", json!({ "path": "x/.env" }), "x/.env", "reads files in x/"),
        ("read_file", json!({ "path": "/etc/passwd" }), "/etc/passwd", "reads files in /etc/"),
        ("list_dir", json!({ "path": "src/./sub/" }), "src/sub", "looks into src/sub/"),
        ("list_dir", json!({}), "", top),
        ("find_files", json!({ "pattern": "*", "path": "src" }), "src", "looks into src/"),
        ("find_files", json!({ "pattern": "*" }), "", top),
        ("search", json!({ "query": "x" }), "", top),
        ("repo_tree", json!({}), "", top),
        ("git_status", json!({}), "", top),
    ];
    for (tool, input, paths, similar) in cases {
        let got = subject(&bench, tool, input.clone()).await;
        assert_eq!(got.paths.join(" "), paths, "{tool} {input}");
        assert_eq!(got.paths.len(), paths.split(' ').count(), "{tool} {input}");
        assert_eq!(got.similar.as_deref(), Some(similar), "{tool} {input}");
    }
    let up = subject(&bench, "read_file", json!({ "path": "../x" })).await;
    let outside = bench.path().parent().unwrap().join("x").display().to_string();
    assert_eq!(up.paths, [outside]);
}

#[tokio::test]
async fn commands_are_those_that_run() {
    let bench = workspace();
    let got = subject(&bench, "shell", json!({ "command": "cargo test && git diff -p" })).await;
    assert_eq!((got.commands.join("; ").as_str(), got.opaque), ("cargo test; git diff -p", false));
    assert_eq!(got.similar.as_deref(), Some("commands `cargo test`, `git diff -p`"));
    let got = subject(&bench, "shell", json!({ "command": "git diff > x" })).await;
    assert_eq!((got.commands.join("; ").as_str(), got.opaque), ("git diff >x", true));
    assert_eq!(got.similar, None);
    let got = subject(&bench, "shell", json!({ "command": "git push --force" })).await;
    assert_eq!((got.opaque, got.similar), (false, None));
}
