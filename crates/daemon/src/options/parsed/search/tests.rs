//! Tests of which engine is used, and with which key.

use super::*;
use crate::cli::Flags;
use crate::options::layers::load;

fn layers(set: &[&str], environment: &[(&str, &str)]) -> Layers {
    let flags = Flags { set: set.iter().map(|pair| (*pair).into()).collect(), ..Flags::default() };
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    load(&flags, &environment.iter().map(owned).collect::<Vec<_>>()).unwrap()
}

/// The source of the key, `-` if there is none, or why search is off.
fn source(set: &[&str], environment: &[(&str, &str)], kept: bool) -> String {
    let mut layers = layers(set, environment);
    if kept {
        layers.keyring.add(SEARCH, Ok("BSA-kept".into()));
    }
    match parse(&layers) {
        Err(error) => error.to_string(),
        Ok(Search { warning: Some((what, _)), engine: None, .. }) => what,
        Ok(Search { engine: None, .. }) => "off".into(),
        Ok(search) => {
            assert!(!format!("{search:?}").contains("BSA-"), "{search:?}");
            search.source.unwrap_or("-".into())
        }
    }
}

const BRAVE: &str = "search.api=brave";

#[test]
fn search_is_off_unless_configured() {
    assert_eq!(source(&[], &[("BRAVE_API_KEY", "BSA-x")], true), "off");
    let searxng = ["search.api=searxng", "search.base_url=http://127.0.0.1:8888"];
    assert_eq!(source(&searxng, &[], false), "-");
    assert_eq!(
        source(&searxng[..1], &[], false),
        "search.base_url is not set, and searxng has no usual one"
    );
    assert_eq!(
        source(&["search.api=altavista"], &[], false),
        "search.api must be one of [\"brave\", \"searxng\"], not \"altavista\" (--set)"
    );
    let nowhere = ["search.api=searxng", "search.base_url=nowhere"];
    assert!(source(&nowhere, &[], false).starts_with("search.base_url: \"nowhere\" is no URL"));
}

#[test]
fn the_section_wins_over_the_variable_over_the_keyring() {
    let variables = [("BRAVE_API_KEY", "BSA-x"), ("MINE", "BSA-y")];
    let none = "web_search is off: there is no key for brave";
    assert_eq!(source(&[BRAVE], &[], false), none);
    assert_eq!(source(&[BRAVE], &[], true), "keyring (search)");
    assert_eq!(source(&[BRAVE], &variables, true), "BRAVE_API_KEY");
    assert_eq!(source(&[BRAVE, "search.api_key_env=MINE"], &variables, true), "MINE");
    assert_eq!(source(&[BRAVE, "search.api_key=BSA-z"], &variables, true), "--set");
    let keyring = [BRAVE, "search.api_key_keyring=true"];
    assert_eq!(source(&keyring, &variables, true), "keyring (search)");
    assert_eq!(source(&[BRAVE, "search.api_key_keyring=false"], &[], true), none);
    // A provider's key of that name is not used for search.
    assert_eq!(source(&[BRAVE, "providers.search.vendor=openai"], &[], true), none);
    let unset = source(&[BRAVE, "search.api_key_env=NOPE"], &[], true);
    assert_eq!(unset, "search.api_key_env names NOPE, which is not set");
}

#[test]
fn the_keyring_is_accessed_only_if_needed() {
    let looks_up = |set: &[&str], environment: &[(&str, &str)], recorded: bool| {
        let recorded: Vec<String> = recorded.then(|| SEARCH.into()).into_iter().collect();
        name_to_look_up(&layers(set, environment), &recorded).is_some()
    };
    assert!(!looks_up(&[], &[], true) && !looks_up(&[BRAVE], &[], false));
    assert!(looks_up(&[BRAVE], &[], true));
    assert!(looks_up(&[BRAVE, "search.api_key_keyring=true"], &[], false));
    assert!(!looks_up(&[BRAVE], &[("BRAVE_API_KEY", "BSA-x")], true));
    assert!(!looks_up(&[BRAVE, "search.api_key=BSA-z"], &[], true));
    assert!(!looks_up(&[BRAVE, "providers.search.vendor=openai"], &[], true));
}
