//! Tests of splitting texts into words and pieces.

use super::{WordPiece, normalized, words};

fn tokenizer() -> WordPiece {
    let json = br###"{"model":{"vocab":{"[CLS]":1,"[SEP]":2,"[UNK]":3,"play":4,"##ing":5,"##s":6,"!":7}}}"###;
    WordPiece::from_json(json).unwrap()
}

#[test]
fn a_word_is_split_into_the_longest_pieces() {
    assert_eq!(tokenizer().encode("Playing plays!", 256), [1, 4, 5, 4, 6, 7, 2]);
    assert_eq!(tokenizer().encode("played", 256), [1, 3, 2]);
    assert_eq!(tokenizer().encode(&"s".repeat(5000), 256), [1, 3, 2]);
    assert_eq!(tokenizer().encode("", 256), [1, 2]);
    assert_eq!(tokenizer().encode("play play play", 4), [1, 4, 4, 2]);
}

#[test]
fn text_is_normalized_before_it_is_split() {
    assert_eq!(normalized("Éa\0b\tÖ\u{301}"), "eab o");
    assert_eq!(normalized("三時に"), " 三  時 に");
    let found: Vec<&str> = words("don't stop. (now)").collect();
    assert_eq!(found, ["don", "'", "t", "stop", ".", "(", "now", ")"]);
}

#[test]
fn another_file_is_refused() {
    assert!(WordPiece::from_json(b"\0\0").is_err());
    let error = WordPiece::from_json(br#"{"model":{"vocab":{}}}"#).unwrap_err();
    assert_eq!(error, "there is no token [CLS]");
}
