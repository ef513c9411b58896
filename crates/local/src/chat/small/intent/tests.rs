//! Tests of the intent of messages.

use super::{asks_workspace, is_addition, is_repair, is_small_talk, wants_change};

#[test]
fn a_change_is_distinguished_from_a_question() {
    for text in ["Fix the bug in calc.py.", "It fails. Please fix it", "can you rename x to y?"] {
        assert!(wants_change(text), "{text}");
    }
    for text in [
        "What does fix() do?",
        "How would I add a test?",
        "Is there a bug?",
        "On which line is it set?",
        "hello",
        "",
    ] {
        assert!(!wants_change(text), "{text}");
    }
    assert!(!wants_change("Review the fix, but do not change anything"));
}

#[test]
fn questions_about_the_workspace_need_a_look() {
    for text in
        ["Which function calls send_mail?", "What does main() print?", "Who wrote this project?"]
    {
        assert!(asks_workspace(text), "{text}");
    }
    for text in ["What is the capital of France?", "How are you?", "Thank you.", ""] {
        assert!(!asks_workspace(text), "{text}");
    }
}

#[test]
fn an_addition_is_distinguished_from_another_change() {
    assert!(is_addition("Add a function f(x) to a.py"));
    assert!(is_addition("please append another section"));
    for text in ["Add a parameter to the function f", "Change the function f", "add", ""] {
        assert!(!is_addition(text), "{text}");
    }
}

#[test]
fn small_talk_is_distinguished_from_questions() {
    for text in ["Hello!", "How are you today?", "What can you do?"] {
        assert!(is_small_talk(text), "{text}");
    }
    for text in
        ["How many colours are there?", "Can you fix a.py?", "What did you find in this file?"]
    {
        assert!(!is_small_talk(text), "{text}");
    }
}

#[test]
fn a_repair_is_distinguished_from_a_rename() {
    assert!(is_repair("a.py fails. Fix it"));
    assert!(!is_repair("Rename a.py and fix the imports"));
}
