//! `list_dir`, `find_files` and `repo_tree` show what is there, in order and in bounds.

use std::os::unix::fs::symlink;

use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;

use crate::bench::{Bench, text};

fn project() -> Bench {
    let bench = Bench::new();
    bench.files(&[
        (".gitignore", "*.log\n/out/\n"),
        (".git/config", ""),
        ("README.md", "hello\n"),
        ("a.log", ""),
        ("node_modules/x/index.js", ""),
        ("out/made.rs", ""),
        ("src/deep/.gitignore", "secret.rs\n"),
        ("src/deep/b.rs", ""),
        ("src/deep/secret.rs", ""),
        ("src/main.rs", "fn main() {}\n"),
        ("target/debug/x.rs", ""),
    ]);
    bench
}

#[tokio::test]
async fn a_directory_is_listed_with_sizes() {
    let bench = project();
    symlink("README.md", bench.path().join("link")).unwrap();
    let expected = ".git/\n.gitignore (12 bytes)\nREADME.md (6 bytes)\na.log (0 bytes)\n\
                    link -> README.md\nnode_modules/\nout/\nsrc/\ntarget/\n";
    assert_eq!(bench.tell("list_dir", json!({})).await, expected);
    assert_eq!(
        bench.tell("list_dir", json!({ "path": "src" })).await,
        "deep/\nmain.rs (13 bytes)\n"
    );
    std::fs::create_dir(bench.path().join("empty")).unwrap();
    assert_eq!(bench.tell("list_dir", json!({ "path": "empty" })).await, "the directory is empty");
}

#[tokio::test]
async fn a_long_directory_is_cut() {
    let bench = Bench::new();
    for n in 0..1003 {
        bench.write(&format!("f{n:04}"), "");
    }
    let listed = bench.tell("list_dir", json!({})).await;
    assert!(listed.starts_with("f0000 (0 bytes)\n"));
    assert!(listed.ends_with("f0999 (0 bytes)\n[3 more entries were left out]\n"));
}

#[tokio::test]
async fn no_look_leads_out() {
    let bench = project();
    symlink("/etc", bench.path().join("etc")).unwrap();
    symlink("..", bench.path().join("up")).unwrap();
    for path in ["..", "/etc", "etc", "up", "src/../..", "/proc/self/root"] {
        let outside = format!("! path is outside the workspace: {path}");
        assert_eq!(bench.tell("list_dir", json!({ "path": path })).await, outside);
        let input = json!({ "pattern": "*", "path": path });
        assert_eq!(bench.tell("find_files", input).await, outside);
    }
    for path in ["nothing", "README.md"] {
        let missing = format!("! no such directory: {path}");
        assert_eq!(bench.tell("list_dir", json!({ "path": path })).await, missing);
    }
    let all = bench.tell("find_files", json!({ "pattern": "*" })).await;
    assert!(!all.contains("passwd") && all.contains("etc\n"), "{all}");
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let bench = project();
    let cases = [
        (json!({ "pattern": "*.rs" }), "src/deep/b.rs\nsrc/main.rs\ntarget/debug/x.rs\n"),
        (json!({ "pattern": "src/*.rs" }), "src/main.rs\n"),
        (json!({ "pattern": "*.rs", "path": "src/deep" }), "src/deep/b.rs\n"),
        (
            json!({ "pattern": "*.rs", "path": bench.path().join("src") }),
            "src/deep/b.rs\nsrc/main.rs\n",
        ),
        (json!({ "pattern": ".git*" }), ".gitignore\nsrc/deep/.gitignore\n"),
        (json!({ "pattern": "*.log" }), "no file fits *.log"),
        (
            json!({ "pattern": "*.rs", "max_results": 1 }),
            "src/deep/b.rs\n[2 more files left out]\n",
        ),
        (json!({}), "! invalid input: /pattern is required"),
        (json!({ "pattern": "[" }), "! invalid input: `pattern`: "),
        (json!({ "pattern": "*", "max_results": "1" }), "! invalid input: /max_results: "),
        (json!({ "pattern": "*", "name": 1 }), "! invalid input: /name is unknown"),
    ];
    for (input, expected) in cases {
        let got = bench.tell("find_files", input.clone()).await;
        let fits =
            if expected.starts_with('!') { got.starts_with(expected) } else { got == expected };
        assert!(fits, "{input}: {got}");
    }
}

#[tokio::test]
async fn the_tree_has_what_was_written_by_hand() {
    let bench = project();
    let tree = ".gitignore\nREADME.md\nsrc/deep/.gitignore\nsrc/deep/b.rs\nsrc/main.rs\n";
    assert_eq!(bench.tell("repo_tree", json!({})).await, tree);
    let cut = bench.tell("repo_tree", json!({ "max_files": 2 })).await;
    assert_eq!(
        cut,
        ".gitignore\nREADME.md\n[only the first 2 files; max_files may be up to 5000]\n"
    );
    assert_eq!(bench.tell("repo_tree", json!({ "max_files": 5 })).await, tree);
    let got = bench.tell("repo_tree", json!({ "max_files": -1 })).await;
    assert!(got.starts_with("! invalid input: /max_files: "), "{got}");
    let empty = Bench::new();
    std::fs::create_dir(empty.path().join("build")).unwrap();
    assert_eq!(empty.tell("repo_tree", json!(null)).await, "workspace contains no files");
}

#[tokio::test]
async fn rules_further_up_in_the_repository_count() {
    let bench = Bench::new();
    bench.files(&[(".git/config", ""), (".gitignore", "made\n"), ("sub/a", ""), ("sub/made", "")]);
    let output = bench.run_in(&bench.path().join("sub"), "repo_tree", json!({})).await;
    assert_eq!(text(&output), "a\n");
}

#[tokio::test]
async fn a_long_tree_is_kept_as_a_file() {
    let bench = Bench::new();
    let names: Vec<_> = (0..600).map(|n| format!("{n:04}{}", "x".repeat(96))).collect();
    names.iter().for_each(|name| bench.write(name, ""));
    let output = bench.run("repo_tree", json!({ "max_files": 5000 })).await;
    assert!(text(&output).contains(" bytes left out]\n"));
    let [file] = &output.files[..] else { panic!("{} files", output.files.len()) };
    assert_eq!(file.content, (names.join("\n") + "\n").as_bytes());
}

#[tokio::test]
async fn a_cancelled_look_says_so() {
    let bench = project();
    bench.cancel();
    for (tool, input) in [
        ("list_dir", json!({})),
        ("repo_tree", json!({})),
        ("repo_map", json!({})),
        ("find_files", json!({ "pattern": "*" })),
        ("search", json!({ "query": "a" })),
    ] {
        // It may have been done before anybody looked at the flag.
        let ending = bench.run(tool, input).await.outcome.ending;
        assert!(matches!(ending, Ending::Cancelled | Ending::Succeeded), "{tool}");
    }
}

#[tokio::test]
async fn looking_is_no_risk() {
    let bench = project();
    for (tool, input, preview) in [
        ("list_dir", json!({ "path": "src" }), "list src"),
        ("repo_tree", json!({}), "list all files"),
        ("repo_map", json!({}), "map all files"),
        ("repo_map", json!({ "path": "src" }), "map src"),
        ("find_files", json!({ "pattern": "*.rs" }), "find *.rs"),
        ("search", json!({ "query": "a" }), "search a"),
        ("git_status", json!({}), "git status --short ."),
    ] {
        let got = bench.assess(tool, input).await;
        assert_eq!((got.risk, got.reversible, got.settled), (Risk::Low, true, None), "{tool}");
        assert_eq!(got.preview, preview);
    }
}
