//! Tests of vectors against a reference that `embeddings.py` computed in f64 from the published
//! weights.

use futures_util::future::join_all;
use quintet_kernel::port::{Embedder as _, SenseError};
use quintet_senses::{LocalEmbedder, Off, Settings};
use serde_json::Value;

use crate::settings;

const COSINE_MINIMUM: f64 = 0.999_99;

/// Texts and the reference's vectors.
fn reference() -> Vec<(String, Vec<f64>)> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("embeddings.json")).unwrap();
    let numbers = |row: &Value| {
        row["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    rows.iter().map(|row| (row["text"].as_str().unwrap().to_owned(), numbers(row))).collect()
}

#[track_caller]
fn check(text: &str, found: &[f32], expected: &[f64]) {
    let found: Vec<f64> = found.iter().map(|x| f64::from(*x)).collect();
    let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
    let dot: f64 = found.iter().zip(expected).map(|(a, b)| a * b).sum();
    let cosine = dot / length(&found) / length(expected);
    assert!(cosine >= COSINE_MINIMUM, "{text:?}: cosine {cosine}");
    assert!((length(&found) - 1.0).abs() < 1e-5, "{text:?} is not normalised");
}

#[tokio::test]
async fn vectors_equal_the_reference() {
    let embedder = LocalEmbedder::new(settings());
    assert_eq!(
        embedder.space().version(),
        "local-sentence-transformer:sentence-transformers/all-MiniLM-L6-v2:384"
    );
    assert_eq!(embedder.ready(), Ok(()));
    assert!(!embedder.is_loaded());
    let reference = reference();
    let texts: Vec<String> = reference.iter().map(|(text, _)| text.clone()).collect();
    let together = embedder.embed(texts.clone()).await.unwrap();
    assert!(embedder.is_loaded());
    assert!(together.service_time_ms > 0.0 && together.queue_wait_ms >= 0.0);
    assert_eq!(together.vectors.len(), reference.len());
    for ((text, expected), found) in reference.iter().zip(&together.vectors) {
        check(text, found, expected);
    }
    // Requests that are computed together get their own vectors.
    let alone = join_all(texts.into_iter().map(|text| embedder.embed(vec![text]))).await;
    for ((text, expected), found) in reference.iter().zip(alone) {
        check(text, &found.unwrap().vectors[0], expected);
    }
    assert_eq!(embedder.embed(Vec::new()).await.unwrap().vectors, Vec::<Vec<f32>>::new());
}

#[tokio::test]
async fn missing_weights_and_damaged_files_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { models_dir: dir.path().into(), ..settings() };
    let embedder = LocalEmbedder::new(settings.clone());
    let missing = SenseError::MissingWeights("embeddings");
    assert_eq!(embedder.ready(), Err(missing.clone()));
    assert_eq!(embedder.embed(vec!["a".into()]).await, Err(missing));
    std::fs::create_dir(dir.path().join("all-minilm-l6-v2")).unwrap();
    for file in &quintet_senses::weights::find("embeddings").unwrap().files {
        let file_of_zeros = std::fs::File::create(dir.path().join(&file.name)).unwrap();
        file_of_zeros.set_len(file.size).unwrap();
    }
    let Err(SenseError::Failed(reason)) = embedder.embed(vec!["a".into()]).await else {
        panic!("an invalid file was accepted");
    };
    assert!(reason.contains("tokenizer.json cannot be loaded"), "{reason}");
}

#[tokio::test]
async fn a_sense_that_is_off_names_its_option() {
    let off = Off("embeddings");
    let error = quintet_kernel::port::Embedder::embed(&off, vec!["a".into()]).await.unwrap_err();
    assert_eq!(error.to_string(), "not configured: set `senses.embeddings`");
}
