//! Tests of decoding characters across tokens.

use super::Utf8Decoder;

#[track_caller]
fn check(tokens: &[&[u8]], expected: &[&str], rest: &str) {
    let mut decoder = Utf8Decoder::default();
    let texts: Vec<String> = tokens.iter().map(|token| decoder.decode(token)).collect();
    assert_eq!(texts, expected);
    assert_eq!(decoder.finish(), rest);
}

#[test]
fn an_incomplete_character_is_held_back() {
    check(&[b"a", &[0xF0, 0x9F], &[0x98], &[0x80, b'b']], &["a", "", "", "\u{1F600}b"], "");
}

#[test]
fn invalid_bytes_are_replaced() {
    check(&[&[0xFF, b'a'], &[0xC3, b'b']], &["\u{FFFD}a", "\u{FFFD}b"], "");
    check(&[&[0xE2, 0x82]], &[""], "\u{FFFD}");
}
