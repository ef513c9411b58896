//! Tests of text and calls in answers, however they are split.

use expect_test::{Expect, expect};

use super::Reader;

/// Parses an answer as a whole, letter by letter and in halves, with the same result.
#[track_caller]
fn check(answer: &str, expected: Expect) {
    let whole = read([answer]);
    let letters: Vec<String> = answer.chars().map(String::from).collect();
    assert_eq!(read(letters.iter().map(String::as_str)), whole, "letter by letter");
    for (at, _) in answer.char_indices() {
        assert_eq!(read([&answer[..at], &answer[at..]]), whole, "split at {at}");
    }
    expected.assert_eq(&whole);
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
    let mut reader = Reader::new(vec!["shell".into(), "read_file".into()]);
    let mut text: String = pieces.into_iter().map(|piece| reader.read(piece)).collect();
    let (rest, calls) = reader.finish();
    text.push_str(&rest);
    let calls = calls.iter().map(|call| format!("\n> {} {}", call.tool, call.arguments));
    format!("{text:?}{}", calls.collect::<String>())
}

#[test]
fn calls_in_tags() {
    check(
        "I look.\n<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
        expect![[r#"
            "I look."
            > shell {"command":"ls"}"#]],
    );
    check(
        "<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n\
         <tool_call>{\"name\": \"read_file\", \"arguments\": {\"path\": \"a</tool_call>b\"}}</tool_call>",
        expect![[r#"
            ""
            > shell {"command":"ls"}
            > read_file {"path":"a</tool_call>b"}"#]],
    );
}

#[test]
fn a_tagged_call_of_an_unknown_tool_is_a_call() {
    check(
        "<tool_call>{\"name\": \"dance\", \"arguments\": {}}</tool_call>",
        expect![[r#"
            ""
            > dance {}"#]],
    );
}

#[test]
fn bare_and_fenced_calls() {
    check(
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"echo }\"}}",
        expect![[r#"
            ""
            > shell {"command":"echo }"}"#]],
    );
    check(
        "Sure:\n```json\n{\n  \"name\": \"shell\",\n  \"arguments\": {\"command\": \"ls\"}\n}\n```\nDone.",
        expect![[r#"
            "Sure:\nDone."
            > shell {"command":"ls"}"#]],
    );
    check(
        "```xml\n<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n```",
        expect![[r#"
            ""
            > shell {"command":"ls"}"#]],
    );
}

#[test]
fn common_mistakes_of_small_models() {
    check(
        "<tool_call>\n{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}",
        expect![[r#"
            ""
            > shell {"command":"ls"}"#]],
    );
    check(
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
        expect![[r#"
            ""
            > shell {"command":"ls"}"#]],
    );
    check(
        "{\"name\": \"shell\", \"parameters\": \"{\\\"command\\\": \\\"ls\\\"}\"}",
        expect![[r#"
            ""
            > shell {"command":"ls"}"#]],
    );
    check(
        "{\"name\": \"shell\", \"arguments\": {\"command\": \"a\nb\\\"c\"}}",
        expect![[r#"
            ""
            > shell {"command":"a\nb\"c"}"#]],
    );
}

#[test]
fn an_answer_in_the_form_of_a_call_is_text() {
    check(
        "{\"name\": \"answer\", \"arguments\": {\"text\": \"Hello!\"}}",
        expect![[r#""Hello!""#]],
    );
    check(
        "<tool_call>\n{\"name\": \"answer\", \"arguments\": {}}\n</tool_call>",
        expect![[r#""""#]],
    );
}

#[test]
fn text_stays_text() {
    check("a < b, `c`, {d} ", expect![[r#""a < b, `c`, {d}""#]]);
    check("```json\n{\"name\": \"Ada\"}\n```", expect![[r#""```json\n{\"name\": \"Ada\"}\n```""#]]);
    check("```rust\nfn main() {}\n```", expect![[r#""```rust\nfn main() {}\n```""#]]);
    check("```\nplain\n```\n\nend\n", expect![[r#""```\nplain\n```\n\nend""#]]);
    check(
        "{\"name\": \"dance\", \"arguments\": {}}",
        expect![[r#""{\"name\": \"dance\", \"arguments\": {}}""#]],
    );
    check("<tool_call> and <tool_", expect![[r#""<tool_call> and <tool_""#]]);
    check("{\"name\": \"shell\", \"argu", expect![[r#""{\"name\": \"shell\", \"argu""#]]);
    check("früh\u{1F600} {\"na\u{ef}ve\"}", expect![[r#""früh😀 {\"naïve\"}""#]]);
}

#[test]
fn no_part_of_a_call_is_returned_as_text() {
    let mut reader = Reader::new(vec!["shell".into()]);
    let call = "<tool_call>{\"name\": \"shell\", \"arguments\": {\"command\": \"ls\"}}";
    assert_eq!(reader.read("Hm. "), "Hm.");
    for letter in call.chars() {
        assert_eq!(reader.read(letter.encode_utf8(&mut [0; 4])), "");
    }
}

#[test]
fn without_tools_nothing_is_held_back() {
    let mut reader = Reader::new(Vec::new());
    assert_eq!(reader.read("<tool_call>\n"), "<tool_call>\n");
    assert_eq!(reader.finish(), (String::new(), Vec::new()));
}
