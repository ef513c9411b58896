//! Embeddings: texts as vectors, as numbers or as base64 of little-endian floats.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::model::TokenCount;
use quintet_kernel::port::{Embedder, SenseError};
use serde_json::{Value, json};

use super::decode::senses::EmbeddingRequest;
use super::reply::Reply;
use crate::checked_embedding;

/// Texts per batch, so that other requests can run in between.
const BATCH_TEXTS: usize = 64;

/// `POST /v1/embeddings`.
pub(super) async fn embed(
    embedder: &dyn Embedder,
    request: EmbeddingRequest,
) -> Result<Value, Reply> {
    let EmbeddingRequest { model, texts, dimensions, base64 } = request;
    if let Err(off @ SenseError::Off(_)) = embedder.ready() {
        return Err(off.into());
    }
    let space = embedder.space();
    let short = space.model.rsplit('/').next().unwrap_or_default();
    if model != space.model && model != short {
        return Err(Reply::unknown_model(&model));
    }
    if let Some(wanted) = dimensions.filter(|wanted| *wanted != space.dimensions as u64) {
        let why =
            format!("the vectors of {model} have {} dimensions, not {wanted}", space.dimensions);
        return Err(Reply::unsupported("dimensions", why));
    }
    let tokens: u64 = texts.iter().map(|text| TokenCount::guess(text).tokens).sum();
    let mut data = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH_TEXTS) {
        for vector in checked_embedding::embed(embedder, batch.to_vec()).await?.vectors {
            let embedding = if base64 { in_base64(&vector) } else { json!(vector) };
            let index = data.len();
            data.push(json!({ "object": "embedding", "index": index, "embedding": embedding }));
        }
    }
    Ok(json!({
        "object": "list",
        "data": data,
        "model": space.model,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

fn in_base64(vector: &[f32]) -> Value {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes).into()
}
