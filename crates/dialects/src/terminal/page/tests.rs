//! What ends up on the original client's screen.

use super::{Page, plain_output};
use crate::terminal::blocks::Kind;

/// Prints what `script` says: `p` prose, `s` another step, `?` a question, else a kind of block.
#[track_caller]
fn check(script: &[(&str, &str)], screen: &str) {
    let mut page = Page::default();
    let print = |(what, text): &(&str, &str)| match *what {
        "p" => page.prose(text),
        "code" => format!("\n┌{}└", page.block(Kind::Code, text)),
        "diff" => format!("\n┌{}└\n", page.block(Kind::Diff, text)),
        "output" => page.block(Kind::ToolOutput, text),
        "asks" => page.block(Kind::Interactive, text),
        "s" => {
            page.step();
            String::new()
        }
        _ => {
            page.question();
            "\n\nmay I? y\n".to_owned()
        }
    };
    let printed: String = script.iter().map(print).collect();
    assert_eq!(printed, screen);
}

#[test]
fn prose_goes_on_where_it_was() {
    check(&[("p", "The ls"), ("p", " command"), ("p", "")], "The ls command");
}

#[test]
fn what_follows_a_frame_begins_a_line() {
    check(&[("p", "Look:\n"), ("code", "a"), ("p", "Done.")], "Look:\n\n┌a└\nDone.");
    check(&[("code", "a"), ("p", "\nDone.")], "\n┌a└\nDone.");
    check(&[("diff", "a"), ("p", "Done.")], "\n┌a└\nDone.");
}

#[test]
fn a_call_stands_on_lines_of_its_own() {
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
fn output_of_commands_is_what_they_printed() {
    let ran = r#"{"cmd":"ls","exit_code":0,"stdout":"a\n","stderr":"","duration":"1s"}"#;
    assert_eq!(plain_output(ran), "a\n");
    let failed = r#"{"cmd":"x","exit_code":2,"stdout":"a","stderr":"b","duration":"1s"}"#;
    assert_eq!(plain_output(failed), "a\nb\nexit code 2\n");
    assert_eq!(plain_output(&format!("[{ran}]")), "$ ls\na\n");
    for other in ["[]", "{}", "{\"cmd\":1}", "plain", "", "[1]"] {
        assert_eq!(plain_output(other), other);
    }
}
