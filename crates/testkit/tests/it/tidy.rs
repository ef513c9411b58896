//! Checks the invariants of `ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

/// The crates of this workspace that each crate may use. A new dependency must be discussed first.
const DEPENDENCIES: [(&str, &[&str]); 15] = [
    ("kernel", &[]),
    ("runtime", &["kernel"]),
    ("dialects", &["kernel"]),
    ("providers", &["kernel"]),
    ("weights", &[]),
    ("local", &["kernel", "weights"]),
    ("senses", &["kernel", "weights", "allocator"]),
    ("allocator", &[]),
    ("stores", &["kernel"]),
    ("chat", &[]),
    ("tools", &["kernel"]),
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
            "senses",
            "weights",
            "allocator",
            "chat",
        ],
    ),
    ("bench", &[]),
];

/// The dependencies of the kernel. None of them does I/O.
const KERNEL_DEPENDENCIES: [&str; 4] = ["jiff", "serde", "serde_json", "thiserror"];

#[test]
fn crates_use_only_allowed_crates() {
    let allowed: BTreeMap<_, _> = DEPENDENCIES.into_iter().collect();
    let packages = packages();
    let names: BTreeSet<&str> = packages.keys().map(String::as_str).collect();
    assert_eq!(names, allowed.keys().copied().collect(), "every crate has a row");
    for (name, uses) in &packages {
        for used in uses.iter().filter_map(|used| used.strip_prefix("quintet-")) {
            assert!(allowed[name.as_str()].contains(&used), "{name} may not use {used}");
        }
    }
}

#[test]
fn the_kernel_does_no_io() {
    let packages = packages();
    assert_eq!(packages["kernel"], KERNEL_DEPENDENCIES.map(String::from));
    for file in sources("crates/kernel/src") {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in
            ["std::fs", "std::net", "std::env", "std::process", "SystemTime", "Instant", "async fn"]
        {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}

/// A decision is a function of data: what it knows about the outside world is passed as data.
#[test]
fn decisions_use_no_port() {
    let (session, policy) =
        (sources("crates/kernel/src/session"), sources("crates/kernel/src/policy"));
    let rules = root().join("crates/kernel/src/policy.rs");
    for file in session.into_iter().chain(policy).chain([rules]) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(!text.contains("dyn "), "{} names a port", file.display());
    }
}

#[test]
fn wire_code_uses_no_transport() {
    let pure = ["wire", "decode", "encode"];
    let is_pure = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy();
        pure.contains(&name.strip_suffix(".rs").unwrap_or(&name))
    };
    for file in sources("crates/dialects/src") {
        if file.components().any(is_pure) {
            let text = std::fs::read_to_string(&file).unwrap();
            for word in ["axum", "tokio"] {
                assert!(!text.contains(word), "{} names {word}", file.display());
            }
        }
    }
}

#[test]
fn every_dialect_has_its_files_golden_transcripts_and_a_page() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for dialect in dialects() {
        let folder = root().join("crates/dialects/src").join(&dialect);
        for part in ["dialect.rs", "wire.rs", "decode.rs", "encode.rs", "serve.rs"] {
            assert!(folder.join(part).exists(), "{dialect} has no {part}");
        }
        let golden = folder.join("golden").read_dir().map(Iterator::count).unwrap_or_default();
        assert!(golden > 0, "{dialect} has no golden transcripts");
        let page = format!("docs/protocols/{dialect}.md");
        assert!(root().join(&page).exists(), "{page} is missing");
        assert!(readme.contains(&page), "README.md does not link to {page}");
    }
}

/// A protocol is a folder and a line: nothing else uses it, and the daemon does not know its
/// options.
#[test]
fn a_dialect_is_named_only_in_its_folder_and_the_list() {
    let list = root().join(DIALECT_LIST);
    for dialect in dialects() {
        let folder = root().join("crates/dialects/src").join(&dialect);
        let code = [format!("dialects::{dialect}"), format!("crate::{dialect}::")];
        let options =
            [format!("\"listen.{dialect}"), format!("\"{dialect}."), format!("== \"{dialect}\"")];
        for file in sources("crates") {
            let own = file.starts_with(&folder) || file == folder.with_extension("rs");
            let is_test = file.ends_with("tests.rs")
                || file.components().any(|part| part.as_os_str() == "tests");
            if own || is_test || file == list {
                continue;
            }
            let text = std::fs::read_to_string(&file).unwrap();
            let in_daemon = file.starts_with(root().join("crates/daemon"));
            let words = code.iter().chain(options.iter().filter(|_| in_daemon));
            let found = words.into_iter().find(|word| text.contains(*word));
            assert!(found.is_none(), "{} names {found:?}", file.display());
        }
    }
}

#[test]
fn every_source_file_has_a_module_doc() {
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

#[test]
fn no_doc_comment_begins_with_a_pronoun() {
    const PRONOUNS: [&str; 9] =
        ["It", "They", "He", "She", "Its", "Their", "Them", "Those", "These"];
    for file in [sources("crates"), sources("bench")].concat() {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut before = "";
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            let first = line.strip_prefix("/// ").filter(|_| !before.starts_with("///"));
            let word = first.and_then(|text| text.split(|c: char| !c.is_alphanumeric()).next());
            let is_pronoun = word.is_some_and(|word| PRONOUNS.contains(&word));
            assert!(!is_pronoun, "{}:{number}: {line}", file.display());
            before = line;
        }
    }
}

/// The file with the list of protocols.
const DIALECT_LIST: &str = "crates/dialects/src/lib.rs";

/// The names in the list of protocols.
fn dialects() -> Vec<String> {
    let list = std::fs::read_to_string(root().join(DIALECT_LIST)).unwrap();
    let words = list.split(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
    let names: Vec<_> =
        words.filter_map(|w| w.strip_suffix("::DIALECT")).map(String::from).collect();
    assert!(!names.is_empty(), "the list of protocols was not found");
    names
}

/// The crates of this workspace and their dependencies, except dev-dependencies.
fn packages() -> BTreeMap<String, Vec<String>> {
    #[expect(clippy::disallowed_methods, reason = "only cargo knows the dependencies")]
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

/// Public types of a crate can be distinguished without their modules.
#[test]
fn a_public_type_name_is_defined_once_in_a_crate() {
    for name in packages().into_keys().filter(|name| name != "bench") {
        let mut seen = BTreeMap::new();
        for file in sources(&format!("crates/{name}/src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for defined in text.lines().filter_map(public_type) {
                let before = seen.insert(defined.to_owned(), file.clone());
                assert!(before.is_none(), "{defined} is in {} and in {before:?}", file.display());
            }
        }
    }
}

/// The name in a line that defines a public type at the top of a file.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest =
        ["struct ", "enum ", "trait ", "type "].iter().find_map(|it| rest.strip_prefix(it))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The name of a constant states what it bounds: `STEP_CALLS_LIMIT`, `BUSY_TIMEOUT`,
/// `READ_BUFFER_BYTES`.
#[test]
fn constant_names_are_not_vague() {
    const VAGUE: [&str; 26] = [
        "PATIENCE",
        "MOST",
        "LONGEST",
        "LEAST",
        "DEEPEST",
        "LARGEST",
        "ROOM",
        "BREATH",
        "PACE",
        "FAREWELL",
        "LIMIT",
        "PIECE",
        "PART",
        "ENOUGH",
        "WORTH",
        "CHEAP",
        "KEPT",
        "FEW",
        "RECENT",
        "OFTEN",
        "SELDOM",
        "USUAL",
        "REMEMBERED",
        "PROBE",
        "NOTE",
        "GRACE",
    ];
    for file in sources("crates") {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            let name =
                line.trim_start().split_once("const ").and_then(|(_, rest)| rest.split_once(':'));
            let vague = name.is_some_and(|(name, _)| VAGUE.contains(&name));
            assert!(!vague, "{}: {line}", file.display());
        }
    }
}

fn sources(below: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(below)];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            } else if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            }
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
