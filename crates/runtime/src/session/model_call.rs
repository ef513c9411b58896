//! A model call in progress. The session's own task polls it, so that text needs no extra channel.

use std::future;
use std::sync::Arc;

use quintet_kernel::model::{Chunk, Failure, FailureKind, Prompt, PromptMessage, PromptPart};
use quintet_kernel::port::{Blobs, BoxFuture, ModelStream, Models, StorageError};
use quintet_kernel::{BlobId, StepId};

use crate::backoff::Backoff;

/// Maximum length of a model response, in bytes.
pub(super) const OUTPUT_LIMIT: u64 = 16 * 1024 * 1024;

type Read = (Box<dyn ModelStream>, Result<Vec<Chunk>, Failure>);

/// A model call in progress. Dropping it cancels the call.
pub(super) struct ModelCall {
    pub(super) step: StepId,
    read: BoxFuture<'static, Result<Read, Failure>>,
}

impl ModelCall {
    pub(super) fn new(
        step: StepId,
        prompt: Prompt,
        blobs: Arc<dyn Blobs>,
        models: &Arc<dyn Models>,
    ) -> Self {
        let read: BoxFuture<'static, _> = if has_media(&prompt) {
            let models = Arc::clone(models);
            Box::pin(async move {
                let prompt =
                    load_media(prompt, &*blobs).await.map_err(|error| unreadable(&error))?;
                read_next(models.stream(prompt)).await
            })
        } else {
            read_next(models.stream(prompt))
        };
        Self { step, read }
    }
}

/// Waits for the next chunks; forever without a call. Cancel safe.
pub(super) async fn next_chunks(
    asking: &mut Option<ModelCall>,
) -> (StepId, Result<Vec<Chunk>, Failure>) {
    let Some(current) = asking else {
        return future::pending().await;
    };
    let result = current.read.as_mut().await;
    let step = current.step.clone();
    match result {
        Ok((stream, Ok(chunks))) => {
            match chunks.last() {
                Some(Chunk::Finished(_)) => *asking = None,
                _ => current.read = read_next(stream),
            }
            (step, Ok(chunks))
        }
        Ok((_, Err(failure))) | Err(failure) => {
            *asking = None;
            (step, Err(failure))
        }
    }
}

fn read_next(mut stream: Box<dyn ModelStream>) -> BoxFuture<'static, Result<Read, Failure>> {
    Box::pin(async move {
        let chunks = stream.next().await;
        Ok((stream, chunks))
    })
}

fn has_media(prompt: &Prompt) -> bool {
    prompt.messages.iter().any(|message| names_media(message))
}

fn names_media(message: &PromptMessage) -> bool {
    let media = |part: &PromptPart| matches!(part, PromptPart::Media { .. });
    match message {
        PromptMessage::User(parts) | PromptMessage::Result { media: parts, .. } => {
            parts.iter().any(media)
        }
        PromptMessage::System(_) | PromptMessage::Assistant { .. } => false,
    }
}

/// Loads the files that a prompt names. Retries while storage is unavailable, for as long as
/// the call is wanted.
pub(super) async fn load_media(
    mut prompt: Prompt,
    blobs: &dyn Blobs,
) -> Result<Prompt, StorageError> {
    for message in prompt.messages.iter_mut().filter(|message| names_media(message)) {
        let (PromptMessage::User(parts) | PromptMessage::Result { media: parts, .. }) =
            Arc::make_mut(message)
        else {
            continue;
        };
        for part in parts {
            if let PromptPart::Media { blob, content, .. } = part {
                *content = read(blob, blobs).await?.into();
            }
        }
    }
    Ok(prompt)
}

async fn read(blob: &BlobId, blobs: &dyn Blobs) -> Result<Vec<u8>, StorageError> {
    let mut backoff = Backoff::new();
    loop {
        match blobs.get(blob).await {
            Err(error @ StorageError::Unavailable(_)) => {
                tracing::warn!(%blob, %error, "storage is unavailable; a model call waits for an attachment");
                backoff.wait().await;
            }
            read => return read,
        }
    }
}

pub(super) fn unreadable(error: &StorageError) -> Failure {
    Failure {
        kind: FailureKind::UnsupportedInput,
        message: format!("an attachment is gone: {error}"),
    }
}

pub(super) fn too_much_output() -> Failure {
    let message = format!("the model wrote more than {OUTPUT_LIMIT} bytes in one answer");
    Failure { kind: FailureKind::Malformed, message }
}
