//! Tests of the precedence of keys, and of keyring lookups.

use std::collections::BTreeMap;

use super::{keys, names_to_look_up};
use crate::cli::Flags;
use crate::keyring::{KeyringError, KeyringKeys};
use crate::options::layers::{Layers, load};

const WORK: [&str; 1] = ["providers.work.vendor=openai"];

fn layers(set: &[&str], environment: &[(&str, &str)]) -> Layers {
    let flags = Flags { set: set.iter().map(|pair| (*pair).into()).collect(), ..Flags::default() };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    load(&flags, &environment.iter().map(owned).collect::<Vec<_>>()).unwrap()
}

/// Checks the names that are looked up if all of these are recorded.
#[track_caller]
fn check_lookups(set: &[&str], environment: &[(&str, &str)], recorded: &[&str], then: &[&str]) {
    let recorded: Vec<String> = recorded.iter().map(|name| (*name).into()).collect();
    assert_eq!(names_to_look_up(&layers(set, environment), &recorded), then);
}

/// The sources of keys if the keyring has these.
fn sources(set: &[&str], environment: &[(&str, &str)], kept: &[&str]) -> BTreeMap<String, String> {
    let mut layers = layers(set, environment);
    for name in kept {
        layers.keyring.add(name, Ok("sk-kept".into()));
    }
    keys(&layers).unwrap().sources
}

#[test]
fn only_recorded_and_needed_keys_are_looked_up() {
    let variable = [("OPENAI_API_KEY", "sk-x")];
    check_lookups(&[], &[], &[], &[]);
    check_lookups(&[], &[], &["openai", "nobody"], &["openai"]);
    check_lookups(&[], &variable, &["openai", "groq"], &["groq"]);
    check_lookups(&["providers.openai.api_key=sk-y"], &[], &["openai"], &[]);
    check_lookups(&["providers.openai.api_key_keyring=true"], &variable, &[], &["openai"]);
    check_lookups(&["providers.openai.api_key_keyring=false"], &[], &["openai"], &[]);
    check_lookups(&WORK, &[], &["openai", "work"], &["openai", "work"]);
    check_lookups(&WORK, &[], &["openai"], &["openai"]);
}

#[test]
fn the_section_wins_over_the_environment_over_the_keyring() {
    let variable = [("OPENAI_API_KEY", "sk-x"), ("MINE", "sk-z")];
    let openai = |set: &[&str], environment: &[(&str, &str)]| {
        sources(set, environment, &["openai"]).remove("openai").unwrap()
    };
    assert_eq!(openai(&[], &[]), "keyring (openai)");
    assert_eq!(openai(&[], &variable), "OPENAI_API_KEY");
    assert_eq!(openai(&["providers.openai.api_key_keyring=true"], &variable), "keyring (openai)");
    assert_eq!(openai(&["providers.openai.api_key_env=MINE"], &variable), "MINE");
    assert_eq!(openai(&["providers.openai.api_key=sk-y"], &variable), "--set");
    let sources = sources(&WORK, &[], &["openai"]);
    assert_eq!(sources["work"], "keyring (openai)");
    assert_eq!(sources.len(), 2);
}

#[test]
fn missing_keys_are_reported_once_per_reason() {
    let mut found = KeyringKeys::default();
    found.add("a", Err(KeyringError::Locked));
    found.add("b", Err(KeyringError::Missing));
    found.add("c", Err(KeyringError::Locked));
    found.add("d", Ok("sk-kept".into()));
    let lines: Vec<String> = found.warnings().into_iter().map(|(what, _)| what).collect();
    assert_eq!(
        lines,
        ["no key for a, c: the keyring is locked", "no key for b: the keyring has no such key"]
    );
    assert_eq!(found.names(), ["d"]);
    assert!(!format!("{found:?}").contains("sk-kept"));
}
