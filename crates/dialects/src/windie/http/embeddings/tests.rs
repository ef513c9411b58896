//! Limits of embeddings are counted in characters.

use serde_json::json;

use super::*;

fn fields(body: &serde_json::Value) -> Fields {
    Fields::of_body(body.to_string().as_bytes()).unwrap()
}

#[test]
fn a_text_has_at_most_8192_characters() {
    let read = |text: String| read_text(fields(&json!({ "text": text })));
    assert_eq!(read("é".repeat(TEXT_LIMIT)).unwrap().chars().count(), TEXT_LIMIT);
    assert_eq!(read("é".repeat(TEXT_LIMIT + 1)).unwrap_err().said().0, 422);
}

#[test]
fn a_batch_has_at_most_256_texts_and_65536_characters() {
    let read = |texts: Vec<String>| read_batch(fields(&json!({ "texts": texts })));
    assert_eq!(read(vec!["é".repeat(256); 256]).unwrap().len(), 256);
    assert_eq!(read(vec![String::new(); 256]).unwrap().len(), 256);
    for wrong in [vec!["é".repeat(257); 256], vec!["x".into(); 257], vec!["x".repeat(8193)]] {
        assert_eq!(read(wrong).unwrap_err().said().0, 422);
    }
}
