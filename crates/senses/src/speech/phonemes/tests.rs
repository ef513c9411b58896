//! Tests of splitting text before it is pronounced.

use super::{pieces, split_clitic, tokens};

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let found = tokens(text);
    let shown: Vec<String> = found
        .iter()
        .map(|token| format!("{}{}", token.text, if token.space { "_" } else { "" }))
        .collect();
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn words_and_punctuation() {
    check("Hello there, you.", &["Hello_", "there", ",_", "you", "."]);
    check("She isn't 'here'!", &["She_", "isn't_", "here_", "!"]);
    check("in the U.S. and", &["in_", "the_", "U.S._", "and"]);
    check("It ends. Then", &["It_", "ends", "._", "Then"]);
    check("well-known — (yes)", &["well_", "known_", "—_", "(", "yes", ")"]);
    check("👋 你好", &["你好"]);
    check("", &[]);
}

#[test]
fn parts_of_words() {
    assert_eq!(split_clitic("doesn't"), ("does", "n't"));
    assert_eq!(split_clitic("she's"), ("she", "'s"));
    assert_eq!(split_clitic("'s"), ("'s", ""));
    assert_eq!(pieces("PostgreSQL"), ["Postgre", "SQL"]);
    assert_eq!(pieces("plain"), ["plain"]);
}
