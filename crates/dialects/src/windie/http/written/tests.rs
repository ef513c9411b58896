//! Titles and summaries in what models write.

use super::*;

#[track_caller]
fn check(written: &str, then: &str) {
    assert_eq!(title(written), then, "{written:?}");
}

#[test]
fn a_title_is_bare_and_short() {
    check("Fix the login page", "Fix the login page");
    check("\n\n  ## Fix the login page\nBecause…", "Fix the login page");
    check("Title: \"Fix the login page.\"", "Fix the login page");
    check("- **`Fix it`**", "Fix it");
    check("* title: Fix it!?;:.", "Fix it");
    check("\u{201c}Fix it\u{201d}", "Fix it");
    check("\u{2022} Fix it", "Fix it");
    check("one two three four five six seven", "one two three four five six");
    check(&"x".repeat(60), &"x".repeat(48));
    check("a: b. c", "a: b. c");
    check("größer als je zuvor", "größer als je zuvor");
}

#[test]
fn what_is_no_title_is_a_new_chat() {
    for nothing in ["", "  \n ", "###", "\"\"", "title:", "- ", "...", "Title: \"\""] {
        check(nothing, "New chat");
    }
}

#[test]
fn a_summary_has_its_facts_below_it() {
    let whole = "SUMMARY:\nThey met.\nTwice.\n\nFACTS:\n- likes tea\n-  lives by the sea \n-\nx";
    let facts = vec!["likes tea".to_owned(), "lives by the sea".to_owned()];
    assert_eq!(summary(whole), ("They met.\nTwice.".into(), facts));
    assert_eq!(summary("Summary: short\nfacts:\n"), ("short".into(), vec![]));
    assert_eq!(summary("SUMMARY: alone"), ("alone".into(), vec![]));
    let facts_first = "FACTS:\n- one\nSUMMARY: after";
    let (text, facts) = summary(facts_first);
    assert_eq!((text.as_str(), facts.len()), (facts_first, 1));
}

#[test]
fn an_answer_without_form_is_its_own_summary() {
    let long = "ä".repeat(600);
    assert_eq!(summary(&long), ("ä".repeat(500), vec![]));
    assert_eq!(summary(" hello "), ("hello".into(), vec![]));
    assert_eq!(summary(""), (String::new(), vec![]));
    assert_eq!(summary("SUMMARY:\nFACTS:\n- x").1, ["x"]);
}
