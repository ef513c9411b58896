//! Limits of embeddings are counted in characters.

use serde_json::json;

use super::*;

#[test]
fn a_text_has_at_most_8192_characters() {
    let read = |text: String| Body::<0>(json!({ "text": text })).read(read_text);
    assert_eq!(read("é".repeat(TEXT_LIMIT)).unwrap().chars().count(), TEXT_LIMIT);
    assert!(read("é".repeat(TEXT_LIMIT + 1)).is_err());
}

#[test]
fn a_batch_has_at_most_256_texts_and_65536_characters() {
    let read = |texts: Vec<String>| Body::<0>(json!({ "texts": texts })).read(read_batch);
    assert_eq!(read(vec!["é".repeat(256); 256]).unwrap().len(), 256);
    assert_eq!(read(vec![String::new(); 256]).unwrap().len(), 256);
    for wrong in [vec!["é".repeat(257); 256], vec!["x".into(); 257], vec!["x".repeat(8193)]] {
        assert!(read(wrong).is_err());
    }
}
