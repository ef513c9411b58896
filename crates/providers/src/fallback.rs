//! Fallback: other models answer if the requested one cannot.

use std::collections::VecDeque;
use std::time::Duration;

use quintet_kernel::model::{Chunk, Failure, FailureKind, ModelRef, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream};

use crate::Providers;

/// The longest wait for an overloaded model while there is a fallback.
const RETRY_TIME_LIMIT: Duration = Duration::from_secs(3);

/// A call that continues with another model if it fails before its first output.
pub(crate) struct FallbackStream {
    providers: Providers,
    prompt: Prompt,
    rest: VecDeque<ModelRef>,
    stream: Option<Box<dyn ModelStream>>,
    /// Why the call could not be started.
    failure: Option<Failure>,
    requested: ModelRef,
    /// Number of attempts so far, of all models.
    tries: u32,
    has_output: bool,
}

impl FallbackStream {
    pub(crate) fn new(providers: Providers, prompt: Prompt) -> Self {
        let requested = prompt.model.clone();
        let other = |model: &&ModelRef| **model != requested;
        let rest = providers.fallback.iter().filter(other).cloned().collect();
        let (stream, failure) = (None, None);
        let mut this = Self {
            providers,
            prompt,
            rest,
            stream,
            failure,
            requested,
            tries: 1,
            has_output: false,
        };
        this.start_current();
        this
    }

    /// Starts the call to the model of the prompt.
    fn start_current(&mut self) {
        let max_retry_wait = if self.rest.is_empty() { Duration::MAX } else { RETRY_TIME_LIMIT };
        (self.stream, self.failure) =
            match self.providers.start(self.prompt.clone(), max_retry_wait) {
                Ok(stream) => (Some(stream), None),
                Err(failure) => (None, Some(failure)),
            };
    }

    async fn advance(&mut self) -> Result<Vec<Chunk>, Failure> {
        let received = match &mut self.stream {
            Some(stream) => stream.next().await,
            None => Err(self.failure.take().unwrap_or_else(finished)),
        };
        match received {
            Ok(chunks) => Ok(self.track(chunks)),
            Err(failure) if self.has_output || !allows_fallback(failure.kind) => Err(failure),
            Err(failure) => self.next_model(failure),
        }
    }

    fn track(&mut self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        for chunk in &mut chunks {
            match chunk {
                Chunk::Output(..) => self.has_output = true,
                Chunk::Retrying { attempt, .. } => {
                    self.tries += 1;
                    *attempt = self.tries;
                }
                Chunk::Finished(answer) if self.prompt.model != self.requested => {
                    answer.by = Some(self.prompt.model.clone());
                }
                Chunk::Finished(_) => {}
            }
        }
        chunks
    }

    /// Switches to the next model and reports that. Fails if there is none.
    fn next_model(&mut self, failure: Failure) -> Result<Vec<Chunk>, Failure> {
        let Some(model) = self.rest.pop_front() else { return Err(failure) };
        let reason = format!("{}; asking {model} instead", failure.message);
        self.prompt.model = model;
        self.start_current();
        self.tries += 1;
        Ok(vec![Chunk::Retrying { attempt: self.tries, wait: Duration::ZERO, reason }])
    }
}

impl ModelStream for FallbackStream {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.advance())
    }
}

/// True if another model may succeed. An error of the prompt itself would occur with all models,
/// and a prompt that is too long is shortened first.
fn allows_fallback(kind: FailureKind) -> bool {
    match kind {
        FailureKind::RateLimited
        | FailureKind::Unavailable
        | FailureKind::Unauthorized
        | FailureKind::UnknownModel
        | FailureKind::Cut
        | FailureKind::Stalled
        | FailureKind::Malformed => true,
        FailureKind::ContextOverflow
        | FailureKind::Rejected
        | FailureKind::UnsupportedInput
        | FailureKind::Refused => false,
    }
}

fn finished() -> Failure {
    Failure { kind: FailureKind::Cut, message: "the answer is over".into() }
}
