//! Requests about pictures and texts that the daemon's senses answer.

pub(super) mod drawing;
mod font;
pub(super) mod source;

use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use image::DynamicImage;
use quintet_kernel::port::{Embedder, Ocr, Vision};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::artifacts::shown;
use super::reply::Reply;
use super::{Route, embeddings, ocr, route, text, user_of, vision};
use crate::transport::access::Token;
use crate::windie::artifacts::ArtifactStore;
use crate::windie::auth::User;
use crate::windie::serve::AppState;
use drawing::{Mark, draw};
use source::{PictureError, Source, decode, encode_png};

/// The senses and the artifacts, without the rest of the daemon.
#[derive(Clone)]
pub(super) struct Senses {
    pub(super) ocr: Arc<dyn Ocr>,
    pub(super) vision: Arc<dyn Vision>,
    pub(super) embedder: Arc<dyn Embedder>,
    pub(super) artifacts: ArtifactStore,
    /// The key of other services that request embeddings.
    pub(super) embedding_key: Option<Token>,
    /// The most bytes that a picture may have.
    pub(super) size_limit: u64,
}

impl FromRef<AppState> for Senses {
    fn from_ref(app: &AppState) -> Self {
        Self {
            ocr: Arc::clone(&app.ports.ocr),
            vision: Arc::clone(&app.ports.vision),
            embedder: Arc::clone(&app.ports.embedder),
            artifacts: app.artifact_store.clone(),
            embedding_key: app.settings.embedding_key.clone(),
            size_limit: app.settings.largest_artifact,
        }
    }
}

/// The state that requests about pictures are handled with.
pub(super) struct Perception {
    pub(super) senses: Senses,
    /// The user whose artifacts may be used; all artifacts if there is none.
    pub(super) user: Option<User>,
    /// The address of the daemon, for URLs.
    pub(super) host: String,
}

impl<S: Sync> FromRequestParts<S> for Perception
where
    Senses: FromRef<S>,
{
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Reply> {
        let host = text(&parts.headers, "host").unwrap_or_default().to_owned();
        Ok(Self { senses: Senses::from_ref(state), user: user_of(parts), host })
    }
}

/// The routes that the senses answer.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> [Route<S>; 14]
where
    Senses: FromRef<S>,
{
    [
        route("POST /api/embeddings/", embeddings::embed_text),
        route("GET /api/embeddings/health", embeddings::health),
        route("POST /embed", embeddings::embed_batch),
        route("POST /api/sdk/ocr/run", ocr::run),
        route("POST /api/sdk/ocr/inspect", ocr::inspect),
        route("POST /api/sdk/ocr/find-text", ocr::find_text),
        route("POST /api/sdk/ocr/find-text-candidates", ocr::find_candidates),
        route("POST /api/sdk/ocr/resolve-text", ocr::resolve_text),
        route("POST /api/sdk/ocr/resolve-candidate", ocr::resolve_candidate),
        route("POST /api/sdk/ocr/overlay", ocr::overlay),
        route("POST /api/sdk/vision/locate", vision::locate),
        route("POST /api/sdk/vision/locate-all", vision::locate_all),
        route("POST /api/sdk/vision/describe", vision::describe),
        route("POST /api/sdk/vision/overlay", vision::overlay),
    ]
}

/// Bounds how many pictures are decoded at once: each may take 120 MB.
static PICTURE_WORK: Semaphore = Semaphore::const_new(2);

/// Runs work on pictures away from the async threads, a bounded number at a time.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Reply> {
    let permit = PICTURE_WORK.acquire().await;
    // The work owns the permit, because it continues and uses memory when the client is gone.
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "work on a picture broke off");
        Reply::internal()
    })
}

/// Draws marks on a picture and keeps the result as a PNG artifact; gives the answer that names it.
pub(super) async fn keep_overlay(
    context: &Perception,
    source: Source,
    marks: Vec<Mark>,
) -> Result<Value, Reply> {
    let (metadata, count) = (source.metadata(), marks.len());
    let drawn = off_thread(move || drawn(&source.bytes, &marks)).await?;
    let kept = context.senses.artifacts.keep_bytes(context.user.as_ref(), drawn?).await?;
    let mut answer = shown(&kept.ok_or_else(Reply::internal)?, &context.host);
    answer["image"] = metadata;
    answer["annotation_count"] = count.into();
    Ok(answer)
}

fn drawn(bytes: &[u8], marks: &[Mark]) -> Result<Vec<u8>, PictureError> {
    let mut image = decode(bytes)?.into_rgb8();
    draw(&mut image, marks);
    encode_png(&DynamicImage::ImageRgb8(image))
}

#[cfg(test)]
mod tests;
