//! The interface of an API family's answer parser, and the writer of its output.

use quintet_kernel::model::{Channel, Chunk, FailureKind, ModelResponse};

use crate::provider_error;
use crate::retry::AttemptError;

/// Parses one answer of one family, event by event. Pure; this is the hot path of a turn.
pub(crate) trait AnswerParser: Send {
    /// Parses one event and appends chunks to `out`, also those before an error. Fails if the event is
    /// malformed or reports an error of the provider.
    fn take(&mut self, event: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError>;
    /// Parses an answer that arrived as one body although a stream was requested. Fails like `take`.
    fn take_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        self.take(body, out)
    }
    /// The state of the answer.
    fn state(&self) -> AnswerState;
    /// The complete answer.
    fn answer(&mut self) -> ModelResponse;
}

/// The state of an answer that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerState {
    /// Nothing was received, so the call can be retried.
    Empty,
    /// The answer has started.
    Begun,
    /// The answer's end is known; more may come, such as its usage.
    Complete,
    /// The provider marked the end.
    Done,
}

/// Appends output to chunks. Adjacent pieces of one read on the same channel become one
/// [`Chunk::Output`].
#[derive(Debug, Default)]
pub(crate) struct OutputWriter {
    /// Bytes written so far, on both channels together.
    pub(crate) written: u64,
}

impl OutputWriter {
    pub(crate) fn write(&mut self, to: Channel, text: &str, out: &mut Vec<Chunk>) {
        if text.is_empty() {
            return;
        }
        self.written += text.len() as u64;
        match out.last_mut() {
            Some(Chunk::Output(channel, before)) if *channel == to => before.push_str(text),
            _ => out.push(Chunk::Output(to, text.to_owned())),
        }
    }
}

pub(crate) fn malformed(error: impl std::fmt::Display) -> AttemptError {
    let message = format!("the provider's answer makes no sense: {error}");
    provider_error::permanent(FailureKind::Malformed, message)
}
