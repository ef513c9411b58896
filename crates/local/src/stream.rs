//! Transfers an answer from a model's thread to the caller.

use quintet_kernel::model::{Chunk, Failure, FailureKind};
use quintet_kernel::port::{BoxFuture, ModelStream};
use tokio::sync::mpsc::UnboundedReceiver;

type ChunkResult = Result<Chunk, Failure>;

/// Maximum number of chunks per read.
const READ_LIMIT: usize = 64;

/// The streamed answer of a model. Dropping it cancels the job.
#[derive(Debug)]
pub(crate) struct ChunkStream {
    receiver: UnboundedReceiver<ChunkResult>,
    /// A failure that follows the chunks of the same read.
    failed: Option<Failure>,
}

impl ChunkStream {
    pub(crate) fn new(receiver: UnboundedReceiver<ChunkResult>) -> Self {
        Self { receiver, failed: None }
    }

    async fn next(&mut self) -> Result<Vec<Chunk>, Failure> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        let mut received = Vec::new();
        if self.receiver.recv_many(&mut received, READ_LIMIT).await == 0 {
            let message = "the model ended before its answer did".into();
            return Err(Failure { kind: FailureKind::Cut, message });
        }
        let mut chunks = Vec::with_capacity(received.len());
        for item in received {
            match item {
                Ok(chunk) => chunks.push(chunk),
                Err(failure) if chunks.is_empty() => return Err(failure),
                Err(failure) => self.failed = Some(failure),
            }
        }
        Ok(chunks)
    }
}

impl ModelStream for ChunkStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.next())
    }
}

/// A call that failed before it started.
pub(crate) struct FailedStream(pub(crate) Failure);

impl ModelStream for FailedStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
