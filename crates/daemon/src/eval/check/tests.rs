//! Tests of the checks of tasks.

use std::fs;

use tempfile::TempDir;

use super::{fingerprint, mentions, of_command, of_files};
use crate::eval::task::Check;

fn check(toml: &str) -> Check {
    toml::from_str(toml).unwrap()
}

#[test]
fn a_word_counts_only_as_a_whole() {
    for (text, word, found) in [
        ("there are 7 lines", "7", true),
        ("there are 17 lines", "7", false),
        ("it takes 7.5 s", "7", false),
        ("it is 7.", "7", true),
        ("The TIMEOUT is 30s", "timeout", true),
        ("timeouts", "timeout", false),
        ("see `src/a.py:3`", "src/a.py", true),
        ("", "x", false),
    ] {
        assert_eq!(mentions(text, word), found, "{word} in {text:?}");
    }
}

#[test]
fn files_and_answers_are_checked() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
    let before = fingerprint(folder.path()).unwrap();
    let failure = |toml: &str, answer: &str| of_files(&check(toml), folder.path(), &before, answer);
    assert_eq!(failure("answer = ['one|1', 'two']", "1 and two"), None);
    assert!(failure("answer = ['three']", "two").unwrap().contains("three"));
    assert_eq!(failure("contains = { 'a.txt' = ['two'] }", ""), None);
    assert!(failure("contains = { 'b.txt' = ['two'] }", "").unwrap().contains("b.txt lacks"));
    assert!(failure("lacks = { 'a.txt' = ['two'] }", "").unwrap().contains("still has"));
    assert!(failure("missing = ['a.txt']", "").unwrap().contains("is there"));
    assert_eq!(failure("unchanged = true", ""), None);
    fs::create_dir(folder.path().join("__pycache__")).unwrap();
    fs::write(folder.path().join("__pycache__/x.pyc"), "x").unwrap();
    assert_eq!(failure("unchanged = true", ""), None, "Python's caches do not count");
    fs::write(folder.path().join("b.txt"), "new").unwrap();
    assert_eq!(failure("unchanged = true", "").unwrap(), "files were changed");
}

#[test]
fn commands_must_succeed_and_print_the_expected_text() {
    let expects = check("command = 'x'\noutput = ['42']");
    assert_eq!(of_command(&expects, true, "is 42\n"), None);
    assert!(of_command(&expects, true, "is 43\n").unwrap().contains("lacks"));
    assert!(of_command(&expects, false, "boom\n\n").unwrap().contains("boom"));
}
