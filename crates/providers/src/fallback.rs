//! Other models that answer where the one that was asked cannot.

use std::collections::VecDeque;
use std::time::Duration;

use quintet_kernel::model::{Chunk, Failure, FailureKind, ModelRef, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream};

use crate::Providers;

/// Where another model can be asked, nobody waits longer than this for one that is busy.
const RETRY_TIME_LIMIT: Duration = Duration::from_secs(3);

/// A call that goes on with another model if it fails before its first word.
pub(crate) struct Chain {
    providers: Providers,
    prompt: Prompt,
    rest: VecDeque<ModelRef>,
    stream: Option<Box<dyn ModelStream>>,
    /// Why the first model could not even be asked.
    failure: Option<Failure>,
    asked: ModelRef,
    /// Tries so far, of all models.
    tries: u32,
    spoke: bool,
}

impl Chain {
    pub(crate) fn new(providers: Providers, prompt: Prompt) -> Self {
        let asked = prompt.model.clone();
        let other = |model: &&ModelRef| **model != asked;
        let rest = providers.fallback.iter().filter(other).cloned().collect();
        let (stream, failure) = (None, None);
        let mut chain =
            Self { providers, prompt, rest, stream, failure, asked, tries: 1, spoke: false };
        chain.ask();
        chain
    }

    /// Asks the model whose turn it is.
    fn ask(&mut self) {
        let patience = if self.rest.is_empty() { Duration::MAX } else { RETRY_TIME_LIMIT };
        (self.stream, self.failure) = match self.providers.start(self.prompt.clone(), patience) {
            Ok(stream) => (Some(stream), None),
            Err(failure) => (None, Some(failure)),
        };
    }

    async fn advance(&mut self) -> Result<Vec<Chunk>, Failure> {
        let heard = match &mut self.stream {
            Some(stream) => stream.next().await,
            None => Err(self.failure.take().unwrap_or_else(over)),
        };
        match heard {
            Ok(chunks) => Ok(self.note(chunks)),
            Err(failure) if self.spoke || !may_pass(failure.kind) => Err(failure),
            Err(failure) => self.go_on(failure),
        }
    }

    fn note(&mut self, mut chunks: Vec<Chunk>) -> Vec<Chunk> {
        for chunk in &mut chunks {
            match chunk {
                Chunk::Output(..) => self.spoke = true,
                Chunk::Retrying { attempt, .. } => {
                    self.tries += 1;
                    *attempt = self.tries;
                }
                Chunk::Finished(answer) if self.prompt.model != self.asked => {
                    answer.by = Some(self.prompt.model.clone());
                }
                Chunk::Finished(_) => {}
            }
        }
        chunks
    }

    /// Asks the next model, and says so.
    fn go_on(&mut self, failure: Failure) -> Result<Vec<Chunk>, Failure> {
        let Some(model) = self.rest.pop_front() else { return Err(failure) };
        let reason = format!("{}; asking {model} instead", failure.message);
        self.prompt.model = model;
        self.ask();
        self.tries += 1;
        Ok(vec![Chunk::Retrying { attempt: self.tries, wait: Duration::ZERO, reason }])
    }
}

impl ModelStream for Chain {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Chunk>, Failure>> {
        Box::pin(self.advance())
    }
}

/// Whether another model may do what this one could not. What is wrong with the prompt itself is
/// wrong for all of them, and too long a prompt is first made shorter.
fn may_pass(kind: FailureKind) -> bool {
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

fn over() -> Failure {
    Failure { kind: FailureKind::Cut, message: "the answer is over".into() }
}
