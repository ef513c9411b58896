//! Tests of what patterns match.

use super::*;

#[track_caller]
fn paths(pattern: &str, yes: &[&str], no: &[&str]) {
    check(&Pattern::path(pattern), pattern, yes, no);
}

#[track_caller]
fn commands(pattern: &str, yes: &[&str], no: &[&str]) {
    check(&Pattern::command(pattern), pattern, yes, no);
}

#[track_caller]
fn check(pattern: &Pattern, written: &str, yes: &[&str], no: &[&str]) {
    for text in yes {
        assert!(pattern.matches(text), "{written} matches {text}");
    }
    for text in no {
        assert!(!pattern.matches(text), "{written} does not match {text}");
    }
}

#[test]
fn a_star_stays_within_a_name() {
    paths("src/*.rs", &["src/main.rs", "src/.rs"], &["src/a/b.rs", "main.rs", "src/main.rsx"]);
    paths("*", &["Makefile", ""], &["a/b"]);
    paths("?.md", &["a.md", "ä.md"], &["ab.md", "/.md", ".md"]);
}

#[test]
fn two_stars_cross_folders() {
    paths("docs/**", &["docs/a", "docs/a/b.md", "docs/"], &["docs", "xdocs/a"]);
    paths("**/.env", &[".env", "a/.env", "a/b/.env"], &["x.env", "a/.env/b", "a/.envrc"]);
    paths("a/**/z", &["a/z", "a/b/z", "a/b/c/z"], &["az", "a/bz", "b/a/z"]);
    paths("**/**/z", &["z", "a/z"], &["yz"]);
    paths("**", &["", "a", "a/b"], &[]);
}

#[test]
fn a_star_in_a_command_is_any_text() {
    commands("git push*", &["git push", "git push --force a/b"], &["git pull", "sudo git push"]);
    commands("cargo test", &["cargo test"], &["cargo test --all", "cargo  test"]);
    commands("", &[""], &["a"]);
}

#[test]
fn a_hostile_pattern_is_matched_quickly() {
    let pattern = Pattern::command(&"*a".repeat(200));
    assert!(!pattern.matches(&"a".repeat(5_000).replace('a', "ab").replace("ab", "b")));
    assert!(pattern.matches(&"a".repeat(5_000)));
}
