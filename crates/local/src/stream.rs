//! Transfers an answer from a model's thread to the caller.

use quintet_kernel::model::{Chunk, Failure, FailureKind};
use quintet_kernel::port::{BoxFuture, ModelStream};
use tokio::sync::mpsc::UnboundedReceiver;

type News = Result<Chunk, Failure>;

/// Chunks taken at once; a model writes far slower than this.
const AT_ONCE: usize = 64;

/// What a model writes. Dropping it tells the thread to stop.
#[derive(Debug)]
pub(crate) struct Words {
    heard: UnboundedReceiver<News>,
    /// A failure that came right behind chunks, which go first.
    failed: Option<Failure>,
}

impl Words {
    pub(crate) fn new(heard: UnboundedReceiver<News>) -> Self {
        Self { heard, failed: None }
    }

    async fn next(&mut self) -> Result<Vec<Chunk>, Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let mut news = Vec::new();
        if self.heard.recv_many(&mut news, AT_ONCE).await == 0 {
            let message = "the model ended before its answer did".into();
            return Err(Failure { kind: FailureKind::Cut, message });
        }
        let mut chunks = Vec::with_capacity(news.len());
        for item in news {
            match item {
                Ok(chunk) => chunks.push(chunk),
                Err(failure) if chunks.is_empty() => return Err(failure),
                Err(failure) => self.failed = Some(failure),
            }
        }
        Ok(chunks)
    }
}

impl ModelStream for Words {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.next())
    }
}

/// A call that came to nothing before it began.
pub(crate) struct Failed(pub(crate) Failure);

impl ModelStream for Failed {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
