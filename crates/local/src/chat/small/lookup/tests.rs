//! Tests of which words of a message are searched.

use super::search;

#[track_caller]
fn check(message: &str, expected: Option<&str>) {
    let query = search(message).map(|input| input["query"].as_str().unwrap().to_owned());
    assert_eq!(query.as_deref(), expected, "{message}");
}

#[test]
fn identifiers_are_searched_before_other_words() {
    check("Where is load_rows() called?", Some("load_rows"));
    check("Does `readConfig` handle MAX_SIZE?", Some("readConfig|MAX_SIZE"));
    check("What does run(\"a\") print?", Some("run"));
}

#[test]
fn other_words_are_searched_without_their_endings() {
    check("How many retries are allowed?", Some("retri|allow"));
    check("Which colours does the theme use?", Some("colour|theme"));
    check("Set the limits in setup.cfg", Some(r"\bset\b|limit|setup|\bcfg\b"));
}

#[test]
fn small_talk_is_not_searched() {
    check("How are you?", None);
    check("", None);
    check("??? ()", None);
}
