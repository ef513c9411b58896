//! Computes embeddings and checks them before they are sent to clients.

use quintet_kernel::port::{Embedder, Embeddings, SenseError};

/// Computes vectors and checks their number and size. JSON cannot represent numbers that are not finite, so
/// such a vector is reported here as an error. Fails if a vector is invalid or the embedder fails.
pub(crate) async fn embed(
    embedder: &dyn Embedder,
    texts: Vec<String>,
) -> Result<Embeddings, SenseError> {
    let count = texts.len();
    let embeddings = embedder.embed(texts).await?;
    let dimensions = embedder.space().dimensions;
    let is_valid = |vector: &Vec<f32>| {
        vector.len() == dimensions && vector.iter().all(|number| number.is_finite())
    };
    if embeddings.vectors.len() == count && embeddings.vectors.iter().all(is_valid) {
        Ok(embeddings)
    } else {
        Err(SenseError::Failed("the model gave an invalid vector".into()))
    }
}
