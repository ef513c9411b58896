//! `repo_map` shows what the files define, the most used first.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::bench::{Bench, text};

/// A service in every language that is known; `Journal` and `helper` are what all is about.
fn project() -> Bench {
    let bench = Bench::new();
    bench.files(&[
        (".gitignore", "made/\n"),
        ("made/x.rs", "pub struct Made;\n"),
        ("node_modules/x/index.js", "function fetched() {}\n"),
        ("src/a.rs", "use crate::journal::Journal;\nfn alone() { Journal::open() }\n"),
        ("src/b.rs", "fn other(j: Journal) { j.append(Journal::open()) }\n"),
        (
            "src/journal.rs",
            "pub struct Journal;\n\nimpl Journal {\n    pub fn open() {}\n    pub fn append() {}\n}\n",
        ),
        ("web/app.ts", "import { helper } from './lib';\nexport function start() { helper(1); }\n"),
        ("web/lib.js", "export const helper = (x) => x;\n"),
        ("api/main.go", "package main\n\nfunc main() {}\n"),
        ("api/tool.py", "class Tool:\n    def run(self): pass\n"),
        ("api/Store.java", "class Store {\n  void load() {}\n}\n"),
        ("lib/list.c", "int length(void) { return 0; }\n"),
        ("lib/list.hpp", "class List {};\n"),
        ("web/view.tsx", "export function View() { return <p/>; }\n"),
        ("notes.md", "# fn nothing() {}\n"),
    ]);
    bench
}

#[tokio::test]
async fn what_is_used_most_comes_first() {
    let expected = "src/journal.rs:\n  - struct Journal (line 1)\n  - method open (line 4)\n  \
                    - method append (line 5)\nweb/lib.js:\n  - function helper (line 1)\n";
    let got = project().tell("repo_map", json!({})).await;
    assert!(got.starts_with(expected), "{got}");
    for line in [
        "api/Store.java:\n  - class Store (line 1)\n  - method load (line 2)\n",
        "api/main.go:\n  - function main (line 3)\n",
        "api/tool.py:\n  - class Tool (line 1)\n  - method run (line 2)\n",
        "lib/list.c:\n  - function length (line 1)\n",
        "lib/list.hpp:\n  - class List (line 1)\n",
        "web/view.tsx:\n  - function View (line 1)\n",
    ] {
        assert!(got.contains(line), "{line}: {got}");
    }
    assert!(!got.contains("made") && !got.contains("fetched") && !got.contains("nothing"), "{got}");
}

#[tokio::test]
async fn a_map_keeps_within_its_bounds() {
    let bench = project();
    let got = bench.tell("repo_map", json!({ "max_symbols": 1 })).await;
    assert_eq!(got, "src/journal.rs:\n  - struct Journal (line 1)\n[14 more symbols left out]\n");
    let got = bench.tell("repo_map", json!({ "max_tokens": 40 })).await;
    assert!(got.len() <= 160 && got.contains(" left out]\n"), "{got}");
    assert!(got.starts_with("src/journal.rs:\n  - struct Journal (line 1)\n"), "{got}");
    for (input, error) in [
        (
            json!({ "max_symbols": -1 }),
            "! invalid input: /max_symbols: -1 is less than the minimum of 1",
        ),
        (json!({ "depth": 1 }), "! invalid input: /depth"),
        (json!({ "path": ".." }), "! path is outside the workspace: .."),
        (json!({ "path": "nowhere" }), "! no such directory: nowhere"),
    ] {
        let got = bench.tell("repo_map", input).await;
        assert!(got.starts_with(error), "{got}");
    }
}

#[tokio::test]
async fn a_part_is_shown_with_what_counts_elsewhere() {
    let bench = project();
    let whole = "src/journal.rs:\n  - struct Journal (line 1)\n  - method open (line 4)\n  \
                 - method append (line 5)\n";
    for path in ["src/journal.rs", "./src/journal.rs", "src/../src/journal.rs"] {
        assert_eq!(bench.tell("repo_map", json!({ "path": path })).await, whole, "{path}");
    }
    let absolute = bench.path().join("src/journal.rs");
    assert_eq!(bench.tell("repo_map", json!({ "path": absolute })).await, whole);
    let src = bench.tell("repo_map", json!({ "path": "src" })).await;
    assert!(src.starts_with(whole) && src.contains("src/a.rs:\n  - function alone (line 2)\n"));
    assert!(!src.contains("web/"), "{src}");
    let got = bench.tell("repo_map", json!({ "path": "notes.md" })).await;
    assert_eq!(got, "notes.md contains no symbols");
}

#[tokio::test]
async fn of_many_files_those_that_matter_are_found() {
    let bench = Bench::new();
    for n in 0..300 {
        let source = format!("fn f{n}() {{\n    wanted();\n    also_{}();\n}}\n", n % 2);
        bench.write(&format!("f{n:03}.rs"), source);
    }
    bench.write("z.rs", "pub fn wanted() {}\npub fn also_0() {}\n#[cfg(x)]\npub fn also_1() {}\n");
    let expected = "z.rs:\n  - function wanted (line 1)\n  - function also_0 (line 2)\n  \
                    - function also_1 (line 4)\n[about 300 more symbols left out]\n";
    assert_eq!(bench.tell("repo_map", json!({ "max_symbols": 3 })).await, expected);
}

#[tokio::test]
async fn an_empty_workspace_is_called_so() {
    let bench = Bench::new();
    assert_eq!(bench.tell("repo_map", json!(null)).await, "workspace contains no symbols");
    bench.write("a.txt", "fn x() {}");
    assert_eq!(bench.tell("repo_map", json!({})).await, "workspace contains no symbols");
}

#[tokio::test]
async fn a_map_is_of_what_is_there_now() {
    let bench = Bench::new();
    bench.files(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    let first = "a.rs:\n  - function one (line 1)\nb.rs:\n  - function two (line 1)\n";
    for _ in 0..2 {
        assert_eq!(bench.tell("repo_map", json!({})).await, first);
    }
    bench.write("a.rs", "\nfn three() {}\n");
    std::fs::remove_file(bench.path().join("b.rs")).unwrap();
    let got = bench.tell("repo_map", json!({})).await;
    assert_eq!(got, "a.rs:\n  - function three (line 2)\n");
}

#[tokio::test]
async fn links_are_not_followed() {
    let outside = Bench::new();
    outside.write("secret.rs", "fn secret() {}\n");
    let bench = Bench::new();
    symlink(outside.path(), bench.path().join("out")).unwrap();
    symlink(outside.path().join("secret.rs"), bench.path().join("a.rs")).unwrap();
    assert_eq!(text(&bench.run("repo_map", json!({})).await), "workspace contains no symbols");
}
