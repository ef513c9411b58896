//! Texts as vectors, computed on this machine by all-MiniLM-L6-v2.

mod minilm;
mod wordpiece;

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Embedder, EmbeddingSpace, Embeddings, SenseError};

use crate::worker::{Limits, Worker};
use crate::{Settings, weights};
use minilm::{DIMENSIONS, MiniLm};

#[cfg(test)]
pub(crate) use minilm::FILES;

/// The name of the sense, of its weights and of its option.
const SENSE: &str = "embeddings";
const QUEUE_LIMIT: usize = 64;
/// Maximum number of texts of different requests that are computed together.
const BATCH_LIMIT: usize = 64;

/// Computes vectors on this machine.
#[derive(Debug)]
pub struct LocalEmbedder {
    settings: Arc<Settings>,
    worker: Worker<MiniLm>,
}

impl LocalEmbedder {
    /// Nothing is loaded before the first request.
    pub fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let limits = Limits { queue: QUEUE_LIMIT, batch: BATCH_LIMIT, idle: settings.idle };
        let load = {
            let settings = Arc::clone(&settings);
            move || MiniLm::load(&settings)
        };
        Self { settings, worker: Worker::new(SENSE, limits, load) }
    }

    /// True while the model is in memory.
    pub fn is_loaded(&self) -> bool {
        self.worker.is_running()
    }
}

impl Embedder for LocalEmbedder {
    fn space(&self) -> EmbeddingSpace {
        EmbeddingSpace {
            provider: "local-sentence-transformer".into(),
            model: "sentence-transformers/all-MiniLM-L6-v2".into(),
            dimensions: DIMENSIONS,
        }
    }

    fn ready(&self) -> Result<(), SenseError> {
        weights::check(SENSE, &self.settings)
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>> {
        Box::pin(async move {
            weights::check(SENSE, &self.settings)?;
            let cost = texts.len();
            let done = self.worker.submit(texts, cost).await?;
            Ok(Embeddings {
                vectors: done.output,
                queue_wait_ms: done.queue_wait.as_secs_f64() * 1e3,
                service_time_ms: done.service_time.as_secs_f64() * 1e3,
            })
        })
    }
}
