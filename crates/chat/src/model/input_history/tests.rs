//! Tests of the input history.

use super::*;

#[test]
fn going_back_and_forth_returns_to_the_typed_input() {
    let mut past = InputHistory::new(vec!["old".into()]);
    past.remember("new");
    assert_eq!(past.older("typing").as_deref(), Some("new"));
    assert_eq!(past.older("new").as_deref(), Some("old"));
    assert_eq!(past.older("old"), None);
    assert_eq!(past.newer().as_deref(), Some("new"));
    assert_eq!(past.newer().as_deref(), Some("typing"));
    assert_eq!(past.newer(), None);
}

#[test]
fn lines_with_secrets_are_not_stored() {
    let mut past = InputHistory::default();
    for line in [
        " with a space before",
        "my password is hunter2",
        "PASSWORD=hunter2",
        "use api_key: abc",
        "the key sk-abcdef",
        "ghp_0123456789",
        "curl -H 'Authorization: Bearer abc'",
    ] {
        past.remember(line);
        assert_eq!(past.take_unsaved(), Vec::<String>::new(), "{line}");
        assert_eq!(past.older("").as_deref(), Some(line.trim()), "the line is in memory");
        past.newer();
    }
    for line in ["count the tokens", "how do I reset a password", "tell me a secret"] {
        past.remember(line);
        assert_eq!(past.take_unsaved(), [line]);
    }
}

#[test]
fn repeated_lines_are_stored_once() {
    let mut past = InputHistory::default();
    past.remember("again");
    past.remember("again");
    assert_eq!(past.take_unsaved(), ["again"]);
}
