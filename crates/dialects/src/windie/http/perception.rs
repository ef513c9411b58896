//! Requests about pictures: what they work with, and which handler answers them.

pub(super) mod drawing;
mod font;
pub(super) mod overlay;
pub(super) mod source;

use axum::extract::Request;
use axum::response::Response;
use quintet_kernel::port::{Ocr, Vision};
use tokio::sync::Semaphore;

use super::reply::Reply;
use super::{body, ocr, text, vision};
use crate::windie::artifacts::ArtifactStore;
use crate::windie::auth::User;

/// A request about a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PerceptionRoute {
    OcrRun,
    OcrInspect,
    OcrFindText,
    OcrFindCandidates,
    OcrResolveText,
    OcrResolveCandidate,
    OcrOverlay,
    Locate,
    LocateAll,
    Describe,
    VisionOverlay,
}

impl PerceptionRoute {
    /// The route of a path below `/api/sdk`.
    pub(super) fn of(service: &str, name: &str) -> Option<Self> {
        match (service, name) {
            ("ocr", "run") => Some(Self::OcrRun),
            ("ocr", "inspect") => Some(Self::OcrInspect),
            ("ocr", "find-text") => Some(Self::OcrFindText),
            ("ocr", "find-text-candidates") => Some(Self::OcrFindCandidates),
            ("ocr", "resolve-text") => Some(Self::OcrResolveText),
            ("ocr", "resolve-candidate") => Some(Self::OcrResolveCandidate),
            ("ocr", "overlay") => Some(Self::OcrOverlay),
            ("vision", "locate") => Some(Self::Locate),
            ("vision", "locate-all") => Some(Self::LocateAll),
            ("vision", "describe") => Some(Self::Describe),
            ("vision", "overlay") => Some(Self::VisionOverlay),
            _ => None,
        }
    }
}

/// What requests about pictures work with.
pub(super) struct Perception<'a> {
    pub(super) ocr: &'a dyn Ocr,
    pub(super) vision: &'a dyn Vision,
    pub(super) artifacts: &'a ArtifactStore,
    /// The user whose artifacts may be used; all may be where users are not told apart.
    pub(super) user: Option<&'a User>,
    /// The most bytes that a picture may have.
    pub(super) size_limit: u64,
}

/// Answers `POST /api/sdk/ocr/*` and `/api/sdk/vision/*`.
pub(super) async fn answer(
    context: &Perception<'_>,
    route: PerceptionRoute,
    request: Request,
) -> Result<Response, Reply> {
    let host = text(request.headers(), "host").unwrap_or_default().to_owned();
    let fields = body(request).await?;
    match route {
        PerceptionRoute::OcrRun => ocr::run(context, fields).await,
        PerceptionRoute::OcrInspect => ocr::inspect(context, fields, &host).await,
        PerceptionRoute::OcrFindText => ocr::find_text(context, fields).await,
        PerceptionRoute::OcrFindCandidates => ocr::find_candidates(context, fields).await,
        PerceptionRoute::OcrResolveText => ocr::resolve_text(context, fields).await,
        PerceptionRoute::OcrResolveCandidate => ocr::resolve_candidate(context, fields).await,
        PerceptionRoute::OcrOverlay => ocr::overlay(context, fields, &host).await,
        PerceptionRoute::Locate => vision::locate(context, fields).await,
        PerceptionRoute::LocateAll => vision::locate_all(context, fields).await,
        PerceptionRoute::Describe => vision::describe(context, fields).await,
        PerceptionRoute::VisionOverlay => vision::overlay(context, fields, &host).await,
    }
}

/// Bounds how many pictures are decoded at once: each may take 120 MB.
static PICTURE_WORK: Semaphore = Semaphore::const_new(2);

/// Runs work on pictures away from the async threads, a bounded number at a time.
pub(super) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Reply> {
    let permit = PICTURE_WORK.acquire().await;
    // The permit is the work's: work goes on when the client is gone, and still takes memory.
    let work = move || {
        let _permit = permit;
        work()
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "work on a picture broke off");
        Reply::new(500, "Internal server error")
    })
}

#[cfg(test)]
mod tests;
