//! Answers for embeddings, OCR and vision that could not be had.

use axum::http::header;
use quintet_kernel::port::SenseError;

use super::reply::Reply;

/// A service of the protocol that a sense of the daemon stands behind.
#[derive(Clone, Copy, Debug)]
pub(super) enum PerceptionService {
    Embeddings,
    Ocr,
    Vision,
}

impl PerceptionService {
    fn name(self) -> &'static str {
        match self {
            Self::Embeddings => "Embedding service",
            Self::Ocr => "OCR service",
            Self::Vision => "Vision service",
        }
    }

    /// The answer for a sense that failed: 503 if it is off, not installed or busy, 422 if the input
    /// is at fault, 502 if the model is.
    pub(super) fn failed(self, error: &SenseError) -> Reply {
        let name = self.name();
        match error {
            SenseError::Off(_) | SenseError::MissingWeights(_) => {
                Reply::new(503, format!("{name} not available: {error}"))
            }
            SenseError::Busy => {
                let reply =
                    Reply::new(503, format!("{name} is busy: too many requests are waiting"));
                reply.with(header::RETRY_AFTER, "1")
            }
            SenseError::BadInput(reason) => Reply::new(422, reason),
            SenseError::Failed(reason) => {
                tracing::warn!("{name} failed: {reason}");
                Reply::new(502, format!("{name} failed: {reason}"))
            }
        }
    }
}
