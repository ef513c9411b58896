//! Embeddings: one text for clients, a batch for other services.

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use quintet_kernel::port::{Embedder, EmbeddingSpace, Embeddings};
use serde::Serialize;

use super::perception::Senses;
use super::reply::{Reply, unavailable};
use super::{Body, text};
use crate::checked_embedding;
use crate::windie::fields::Object;

/// The longest text, in characters.
const TEXT_LIMIT: usize = 8192;
const MODEL_NAME_LIMIT: usize = 128;
const BATCH_LIMIT: usize = 256;
const BATCH_CHARACTERS_LIMIT: usize = 65_536;
/// The provider under which other services store vectors of this daemon.
const SERVICE_PROVIDER: &str = "embedding-service";
/// The header with the key of other services.
const KEY: &str = "x-windie-embedding-key";
const SERVICE: &str = "Embedding service";

/// The model that made an embedding.
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
    State(senses): State<Senses>,
    body: Body,
) -> Result<Json<impl Serialize>, Reply> {
    #[derive(Serialize)]
    struct Answer {
        embedding: Vec<f32>,
        #[serde(flatten)]
        model: EmbeddingModel,
    }
    let text = body.read(read_text)?;
    let mut embeddings = embed(&*senses.embedder, vec![text]).await?;
    let embedding = embeddings.vectors.pop().unwrap_or_default();
    Ok(Json(Answer { embedding, model: senses.embedder.space().into() }))
}

/// `GET /api/embeddings/health`.
pub(super) async fn health(State(senses): State<Senses>) -> Result<Json<impl Serialize>, Reply> {
    #[derive(Serialize)]
    struct Answer {
        status: &'static str,
        #[serde(flatten)]
        model: EmbeddingModel,
    }
    senses.embedder.ready().map_err(unavailable(SERVICE))?;
    Ok(Json(Answer { status: "healthy", model: senses.embedder.space().into() }))
}

/// `POST /embed`, for other services, which have a key. Without a configured key all are refused.
pub(super) async fn embed_batch(
    State(senses): State<Senses>,
    request: Request,
) -> Result<Json<impl Serialize>, Reply> {
    #[derive(Serialize)]
    struct Answer {
        embeddings: Vec<Vec<f32>>,
        #[serde(flatten)]
        model: EmbeddingModel,
        queue_wait_ms: f64,
        service_time_ms: f64,
    }
    let missing = || Reply::new(503, "Embedding service API key is not configured");
    let key = senses.embedding_key.as_ref().ok_or_else(missing)?;
    if !key.matches(text(request.headers(), KEY).unwrap_or_default()) {
        return Err(Reply::new(401, "Invalid embedding service API key"));
    }
    let texts = <Body>::from_request(request, &()).await?.read(read_batch)?;
    let embedder = &*senses.embedder;
    let Embeddings { vectors, queue_wait_ms, service_time_ms } = embed(embedder, texts).await?;
    let space = EmbeddingSpace { provider: SERVICE_PROVIDER.into(), ..embedder.space() };
    Ok(Json(Answer { embeddings: vectors, model: space.into(), queue_wait_ms, service_time_ms }))
}

fn read_text(body: &Object<'_>) -> String {
    body.text("model_name", 1..=MODEL_NAME_LIMIT);
    body.needed_text("text", 1..=TEXT_LIMIT)
}

fn read_batch(body: &Object<'_>) -> Vec<String> {
    let texts = body.needed("texts").entries(1..=BATCH_LIMIT);
    let texts: Vec<String> = texts.iter().filter_map(|text| text.text(0..=TEXT_LIMIT)).collect();
    let characters: usize = texts.iter().map(|text| text.chars().count()).sum();
    if characters > BATCH_CHARACTERS_LIMIT {
        let why = "Value error, the texts may have at most 65536 characters together";
        body.wrong("texts", why);
    }
    texts
}

async fn embed(embedder: &dyn Embedder, texts: Vec<String>) -> Result<Embeddings, Reply> {
    checked_embedding::embed(embedder, texts).await.map_err(unavailable(SERVICE))
}

#[cfg(test)]
mod tests;
