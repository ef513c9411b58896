//! Keeps the map of `ARCHITECTURE.md` true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Which of our crates a crate may use. Whoever needs a new arrow discusses it first.
const ARROWS: [(&str, &[&str]); 13] = [
    ("kernel", &[]),
    ("runtime", &["kernel"]),
    ("dialects", &["kernel"]),
    ("providers", &["kernel"]),
    ("local", &["kernel"]),
    ("stores", &["kernel"]),
    ("chat", &[]),
    ("seccomp", &[]),
    ("tools", &["kernel", "seccomp"]),
    ("memory", &["kernel"]),
    ("testkit", &["kernel"]),
    (
        "daemon",
        &[
            "kernel",
            "runtime",
            "dialects",
            "providers",
            "local",
            "stores",
            "tools",
            "memory",
            "chat",
        ],
    ),
    ("bench", &[]),
];

/// What the kernel is made of besides the standard library. None of it does I/O.
const KERNEL: [&str; 4] = ["jiff", "serde", "serde_json", "thiserror"];

#[test]
fn crates_use_only_whom_they_may() {
    let allowed: BTreeMap<_, _> = ARROWS.into_iter().collect();
    let packages = packages();
    let names: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    assert_eq!(names, allowed.keys().copied().collect(), "every crate has its row");
    for (name, uses) in &packages {
        for used in uses.iter().filter_map(|used| used.strip_prefix("quintet-")) {
            assert!(allowed[name.as_str()].contains(&used), "{name} may not use {used}");
        }
    }
}

#[test]
fn the_kernel_is_made_of_nothing_that_does_io() {
    let packages = packages();
    assert_eq!(packages["kernel"], KERNEL.map(String::from));
    for file in sources("crates/kernel/src") {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in
            ["std::fs", "std::net", "std::env", "std::process", "SystemTime", "Instant", "async fn"]
        {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

/// A decision is a function of data: what is known of the world outside comes in as such.
#[test]
fn a_decision_asks_no_port() {
    let (session, policy) =
        (sources("crates/kernel/src/session"), sources("crates/kernel/src/policy"));
    let rules = root().join("crates/kernel/src/policy.rs");
    for file in session.into_iter().chain(policy).chain([rules]) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("dyn "), "{} names a port", file.display());
    }
}

#[test]
fn translators_know_no_transport() {
    let pure = ["wire.rs", "decode.rs", "encode.rs"];
    for file in sources("crates/dialects/src") {
        if pure.iter().any(|name| file.ends_with(name)) {
            let text = std::fs::read_to_string(&file).unwrap();
            for word in ["axum", "tokio"] {
                assert!(!text.contains(word), "{} names {word}", file.display());
            }
        }
    }
}

#[test]
fn every_dialect_has_its_parts_and_golden_transcripts() {
    let folders = root().join("crates/dialects/src").read_dir().unwrap();
    let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let shared = ["transport", "jsonrpc", "held_calls", "change_feed", "projection"];
    let dialects: Vec<_> =
        folders.filter(|path| !shared.iter().any(|shared| path.ends_with(shared))).collect();
    assert!(!dialects.is_empty());
    for dialect in dialects {
        for part in ["wire.rs", "decode.rs", "encode.rs", "serve.rs"] {
            assert!(dialect.join(part).exists(), "{} has no {part}", dialect.display());
        }
        let golden = dialect.join("golden").read_dir().map(Iterator::count).unwrap_or_default();
        assert!(golden > 0, "{} has no golden transcripts", dialect.display());
    }
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for file in [sources("crates"), sources("bench")].concat() {
        let text = std::fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap_or_default();
        assert!(
            first.starts_with("//! ") && first.len() > 12,
            "{} opens with {first:?}",
            file.display()
        );
    }
}

/// Our crates and what each uses outside its tests.
fn packages() -> BTreeMap<String, Vec<String>> {
    #[expect(clippy::disallowed_methods, reason = "only cargo knows the graph")]
    let cargo = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let uses = |package: &Value| -> Vec<String> {
        let all = package["dependencies"].as_array().unwrap().iter();
        all.filter(|used| used["kind"].is_null()).map(|used| text(&used["name"])).collect()
    };
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| (text(&package["name"]).replace("quintet-", ""), uses(package)))
        .collect()
}

fn sources(below: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.extension().is_some_and(|end| end == "rs") {
                true => files.push(path),
                false if path.is_dir() && !path.ends_with("target") => folders.push(path),
                false => {}
            }
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
