//! Embeddings: one text for clients, a batch for other services.

use axum::extract::Request;
use axum::response::Response;
use quintet_kernel::port::{Embedder, EmbeddingSpace, Embeddings, SenseError};
use serde::Serialize;
use serde_json::json;

use super::body;
use super::fields::Fields;
use super::reply::{Reply, ok};
use super::sense_error::PerceptionService;
use crate::checked_embedding;

/// The longest text, in characters.
const TEXT_LIMIT: usize = 8192;
const MODEL_NAME_LIMIT: usize = 128;
/// The most texts of one batch.
const BATCH_LIMIT: usize = 256;
/// The most characters of one batch.
const BATCH_CHARACTERS_LIMIT: usize = 65_536;
/// The provider under which other services store vectors of this daemon.
const SERVICE_PROVIDER: &str = "embedding-service";

/// The model behind an answer.
#[derive(Serialize)]
struct EmbeddingModel {
    provider_id: String,
    model_id: String,
    model_name: String,
    dimension: usize,
    embedding_space_version: String,
}

impl From<EmbeddingSpace> for EmbeddingModel {
    fn from(space: EmbeddingSpace) -> Self {
        Self {
            embedding_space_version: space.version(),
            provider_id: space.provider,
            model_name: space.model.clone(),
            model_id: space.model,
            dimension: space.dimensions,
        }
    }
}

/// `POST /api/embeddings/`.
pub(super) async fn embed_text(
    embedder: &dyn Embedder,
    request: Request,
) -> Result<Response, Reply> {
    #[derive(Serialize)]
    struct Answer {
        embedding: Vec<f32>,
        #[serde(flatten)]
        model: EmbeddingModel,
    }
    let text = read_text(body(request).await?)?;
    let mut embeddings = embed(embedder, vec![text]).await?;
    let embedding = embeddings.vectors.pop().unwrap_or_default();
    Ok(ok(&Answer { embedding, model: embedder.space().into() }))
}

/// `GET /api/embeddings/health`.
pub(super) fn health(embedder: &dyn Embedder) -> Result<Response, Reply> {
    #[derive(Serialize)]
    struct Answer {
        status: &'static str,
        #[serde(flatten)]
        model: EmbeddingModel,
    }
    embedder.ready().map_err(unavailable)?;
    Ok(ok(&Answer { status: "healthy", model: embedder.space().into() }))
}

/// `POST /embed`, for other services. The caller has checked the key.
pub(super) async fn embed_batch(
    embedder: &dyn Embedder,
    request: Request,
) -> Result<Response, Reply> {
    #[derive(Serialize)]
    struct Answer {
        embeddings: Vec<Vec<f32>>,
        #[serde(flatten)]
        model: EmbeddingModel,
        queue_wait_ms: f64,
        service_time_ms: f64,
    }
    let texts = read_batch(body(request).await?)?;
    let Embeddings { vectors, queue_wait_ms, service_time_ms } = embed(embedder, texts).await?;
    let space = EmbeddingSpace { provider: SERVICE_PROVIDER.into(), ..embedder.space() };
    Ok(ok(&Answer { embeddings: vectors, model: space.into(), queue_wait_ms, service_time_ms }))
}

fn read_text(mut fields: Fields) -> Result<String, Reply> {
    let text = fields.text("text", 1..=TEXT_LIMIT);
    fields.maybe_text("model_name", 1..=MODEL_NAME_LIMIT);
    fields.rest()?;
    Ok(text)
}

fn read_batch(mut fields: Fields) -> Result<Vec<String>, Reply> {
    let texts = fields.texts("texts", 1..=BATCH_LIMIT, &(0..=TEXT_LIMIT));
    let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
    if characters > BATCH_CHARACTERS_LIMIT {
        let why = "Value error, the texts may have at most 65536 characters together";
        fields.wrong(&[json!("texts")], "value_error", why);
    }
    fields.rest()?;
    Ok(texts)
}

async fn embed(embedder: &dyn Embedder, texts: Vec<String>) -> Result<Embeddings, Reply> {
    checked_embedding::embed(embedder, texts).await.map_err(unavailable)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unavailable(error: SenseError) -> Reply {
    PerceptionService::Embeddings.failed(&error)
}

#[cfg(test)]
mod tests;
