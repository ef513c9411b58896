//! Decodes the bytes of an answer for any API family.

use quintet_kernel::model::{Chunk, FailureKind, FinishReason};

use crate::answer_parser::{AnswerParser, AnswerState, malformed};
use crate::provider_error;
use crate::retry::AttemptError;
use crate::sse::{Framer, TooLong};

/// Maximum length of an answer that is one JSON body, in bytes.
const BODY_BYTES_LIMIT: usize = 32 << 20;

/// An answer that is being decoded.
pub(crate) struct Decoder {
    encoding: Encoding,
    answer_parser: Box<dyn AnswerParser>,
    /// True once output was passed on.
    has_output: bool,
}

/// The encoding of the answer.
enum Encoding {
    /// Server-sent events.
    Stream(Framer),
    /// One JSON body, collected here.
    Whole(Vec<u8>),
}

impl Decoder {
    /// A decoder of server-sent events.
    pub(crate) fn stream(answer_parser: Box<dyn AnswerParser>) -> Self {
        Self { encoding: Encoding::Stream(Framer::default()), answer_parser, has_output: false }
    }

    /// A decoder of one JSON body.
    pub(crate) fn whole(answer_parser: Box<dyn AnswerParser>) -> Self {
        Self { encoding: Encoding::Whole(Vec::new()), answer_parser, has_output: false }
    }

    /// Takes bytes and appends chunks to `out`, also those before an error. Fails if the answer is malformed
    /// or the provider reports an error.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let answer_parser = &mut self.answer_parser;
        let fed = match &mut self.encoding {
            Encoding::Stream(framer) => {
                framer.feed(bytes, |data| take(&mut **answer_parser, data, out))
            }
            Encoding::Whole(body) if body.len() + bytes.len() > BODY_BYTES_LIMIT => {
                Err(TooLong.into())
            }
            Encoding::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
        };
        self.has_output |= !out.is_empty();
        fed
    }

    /// True once the provider marked the end of the answer.
    pub(crate) fn is_done(&self) -> bool {
        self.answer_parser.state() == AnswerState::Done
    }

    /// True while nothing of the answer was received, so that the call can be retried.
    pub(crate) fn is_blank(&self) -> bool {
        self.answer_parser.state() == AnswerState::Empty
    }

    /// Ends the stream; appends [`Chunk::Finished`] if the answer is complete. Fails if it is not.
    pub(crate) fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let answer_parser = &mut self.answer_parser;
        let (rest, plain) = match &mut self.encoding {
            Encoding::Stream(framer) => {
                (framer.end(|data| take(&mut **answer_parser, data, out)), false)
            }
            Encoding::Whole(body) => (answer_parser.take_whole(body, out), true),
        };
        // A body that can be parsed is complete, even without an end marker.
        let whole = match self.answer_parser.state() {
            AnswerState::Complete | AnswerState::Done => true,
            AnswerState::Begun => plain && rest.is_ok(),
            AnswerState::Empty => false,
        };
        if whole {
            return self.finish(out);
        }
        match rest {
            // An incomplete event at the end of a stream is cut off, not malformed.
            Err(trouble) if plain || trouble.failure.kind != FailureKind::Malformed => Err(trouble),
            Ok(()) | Err(_) => Err(provider_error::transient(
                FailureKind::Cut,
                "the answer broke off in the middle",
            )),
        }
    }

    fn finish(&mut self, out: &mut Vec<Chunk>) -> Result<(), AttemptError> {
        let answer = self.answer_parser.answer();
        let has_output = self.has_output || !out.is_empty();
        if answer.finish == FinishReason::Refused && !has_output {
            return Err(provider_error::permanent(
                FailureKind::Refused,
                "the provider refused to answer",
            ));
        }
        out.push(Chunk::Finished(answer));
        Ok(())
    }
}

/// Parses one event; events after the end are ignored.
fn take(
    answer_parser: &mut dyn AnswerParser,
    data: &[u8],
    out: &mut Vec<Chunk>,
) -> Result<(), AttemptError> {
    if answer_parser.state() == AnswerState::Done { Ok(()) } else { answer_parser.take(data, out) }
}

impl From<TooLong> for AttemptError {
    fn from(TooLong: TooLong) -> Self {
        malformed("it is too long")
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}
