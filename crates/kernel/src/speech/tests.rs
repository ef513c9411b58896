//! Tests of the spoken form of a text, wherever its stream is split.

use super::Sentences;

fn sentences(text: &str, piece: usize) -> Vec<String> {
    let mut sentences = Sentences::default();
    let letters: Vec<char> = text.chars().collect();
    let mut spoken: Vec<String> = letters
        .chunks(piece)
        .flat_map(|piece| sentences.push(&piece.iter().collect::<String>()))
        .collect();
    spoken.extend(sentences.finish());
    spoken
}

#[track_caller]
fn check(text: &str, spoken: &[&str]) {
    for piece in [1, 3, 1000] {
        assert_eq!(sentences(text, piece), spoken, "in pieces of {piece}: {text:?}");
    }
}

#[test]
fn sentences_are_spoken_one_by_one() {
    check("Hello there. How are you? Fine!", &["Hello there.", "How are you?", "Fine!"]);
    check("It is 3.14 and v1.2 now", &["It is 3.14 and v1.2 now"]);
    check("Dr. Smith and J. Doe came. All left.", &["Dr. Smith and J. Doe came.", "All left."]);
    check("One line\nanother line", &["One line", "another line"]);
    check("He said \"stop.\" Then he left.", &["He said \"stop.\"", "Then he left."]);
}

#[test]
fn markdown_is_not_spoken() {
    check("## Heading\n\n- **bold** item\n- `code` item", &["Heading", "bold item", "code item"]);
    check("1. First\n2. Second", &["1. First", "2. Second"]);
    check("See [the docs. Really](https://a.b/c) now.", &["See the docs. Really now."]);
    check("![picture](x.png) Shown above.", &["Shown above."]);
    check("Go to https://example.com/a?b=c. Then stop.", &["Go to.", "Then stop."]);
    check("| a | b |\n|---|---|\n| 1 | 2 |", &["a, b", "1, 2"]);
    check("> quoted\n---\n<br> text", &["quoted", "text"]);
}

#[test]
fn code_blocks_are_not_spoken() {
    check("Run this:\n```sh\nrm -rf x. Really.\n```\nDone.", &["Run this:", "Done."]);
    check("~~~\ncode\n~~~", &[]);
    check("```\nnever closed. Not said.", &[]);
}

#[test]
fn long_text_without_sentences_is_cut_between_words() {
    let spoken = sentences(&"word ".repeat(1000), 7);
    assert!(spoken.len() > 10);
    assert!(spoken.iter().all(|sentence| sentence.chars().count() <= 401));
    assert_eq!(spoken.join(" ").split_whitespace().count(), 1000);
}

#[test]
fn an_empty_text_is_not_spoken() {
    for text in ["", "\n\n", "***", "```", "👋", "...", "[", "](", "![", "<>"] {
        check(text, &[]);
    }
}

#[test]
fn an_unclosed_code_block_is_not_buffered() {
    let mut sentences = Sentences::default();
    sentences.push("```\n");
    sentences.push(&"x".repeat(1_000_000));
    assert!(sentences.line.len() < 1000);
}
