//! The screen of the original client.

use super::{Screen, plain_output};
use crate::terminal::blocks::BlockKind;

/// Prints a script: `p` is prose, `s` a new step, `?` a question, anything else a kind of block.
#[track_caller]
fn check(script: &[(&str, &str)], expected: &str) {
    let mut screen = Screen::default();
    let print = |(kind, text): &(&str, &str)| match *kind {
        "p" => screen.prose(text),
        "code" => format!("\n┌{}└", screen.block(BlockKind::Code, text)),
        "diff" => format!("\n┌{}└\n", screen.block(BlockKind::Diff, text)),
        "output" => screen.block(BlockKind::ToolOutput, text),
        "asks" => screen.block(BlockKind::Interactive, text),
        "s" => {
            screen.step();
            String::new()
        }
        _ => {
            screen.question();
            "\n\nmay I? y\n".to_owned()
        }
    };
    let printed: String = script.iter().map(print).collect();
    assert_eq!(printed, expected);
}

#[test]
fn prose_continues_on_the_same_line() {
    check(&[("p", "The ls"), ("p", " command"), ("p", "")], "The ls command");
}

#[test]
fn text_after_a_frame_starts_a_line() {
    check(&[("p", "Look:\n"), ("code", "a"), ("p", "Done.")], "Look:\n\n┌a└\nDone.");
    check(&[("code", "a"), ("p", "\nDone.")], "\n┌a└\nDone.");
    check(&[("diff", "a"), ("p", "Done.")], "\n┌a└\nDone.");
}

#[test]
fn a_call_is_printed_on_its_own_lines() {
    check(
        &[
            ("p", "I look."),
            ("asks", "$ ls"),
            ("?", ""),
            ("output", "a\n"),
            ("s", ""),
            ("p", "One."),
        ],
        "I look.\n$ ls\n\nmay I? y\na\nOne.",
    );
    check(&[("p", "I read."), ("output", "text"), ("s", ""), ("p", "Ok.")], "I read.\ntext\nOk.");
    check(&[("p", "One."), ("output", ""), ("s", ""), ("p", "Two.")], "One.\nTwo.");
}

#[test]
fn the_output_of_commands_is_shown_without_json() {
    let ran = r#"{"cmd":"ls","exit_code":0,"stdout":"a\n","stderr":"","duration":"1s"}"#;
    assert_eq!(plain_output(ran), "a\n");
    let failed = r#"{"cmd":"x","exit_code":2,"stdout":"a","stderr":"b","duration":"1s"}"#;
    assert_eq!(plain_output(failed), "a\nb\nexit code 2\n");
    assert_eq!(plain_output(&format!("[{ran}]")), "$ ls\na\n");
    for other in ["[]", "{}", "{\"cmd\":1}", "plain", "", "[1]"] {
        assert_eq!(plain_output(other), other);
    }
}
