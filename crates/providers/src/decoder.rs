//! Reads an answer from bytes, whatever its family.

use quintet_kernel::model::{Chunk, FailureKind, Finish};

use crate::draft::{Draft, Stage, malformed};
use crate::fault;
use crate::retry::Trouble;
use crate::sse::{Framer, TooLong};

/// The longest plain answer that is taken.
const LONGEST_WHOLE: usize = 32 << 20;

/// An answer as far as it was read.
pub(crate) struct Decoder {
    form: Form,
    draft: Box<dyn Draft>,
    /// Whether any output was passed on.
    spoke: bool,
}

/// How the answer comes.
enum Form {
    /// As server-sent events.
    Stream(Framer),
    /// As one JSON body, collected here.
    Whole(Vec<u8>),
}

impl Decoder {
    /// For an answer of server-sent events.
    pub(crate) fn stream(draft: Box<dyn Draft>) -> Self {
        Self { form: Form::Stream(Framer::default()), draft, spoke: false }
    }

    /// For an answer of one JSON body.
    pub(crate) fn whole(draft: Box<dyn Draft>) -> Self {
        Self { form: Form::Whole(Vec::new()), draft, spoke: false }
    }

    /// Takes a read. What was understood before an error is in `out` all the same.
    pub(crate) fn feed(&mut self, bytes: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        let draft = &mut self.draft;
        let fed = match &mut self.form {
            Form::Stream(framer) => framer.feed(bytes, |data| take(&mut **draft, data, out)),
            Form::Whole(body) if body.len() + bytes.len() > LONGEST_WHOLE => Err(TooLong.into()),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
        };
        self.spoke |= !out.is_empty();
        fed
    }

    /// Whether the provider said that this is all.
    pub(crate) fn is_done(&self) -> bool {
        self.draft.stage() == Stage::Done
    }

    /// Whether nothing of an answer was seen yet, so that it can be asked for again.
    pub(crate) fn is_blank(&self) -> bool {
        self.draft.stage() == Stage::Blank
    }

    /// The stream is over, properly or not; appends [`Chunk::Finished`] if the answer is whole.
    pub(crate) fn end(&mut self, out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        let draft = &mut self.draft;
        let (rest, plain) = match &mut self.form {
            Form::Stream(framer) => (framer.end(|data| take(&mut **draft, data, out)), false),
            Form::Whole(body) => (draft.take_whole(body, out), true),
        };
        // A body that can be parsed is whole, whether it says so or not.
        let whole = match self.draft.stage() {
            Stage::Whole | Stage::Done => true,
            Stage::Begun => plain && rest.is_ok(),
            Stage::Blank => false,
        };
        if whole {
            return self.finish(out);
        }
        match rest {
            // Half an event at the end of a stream is not malformed but cut.
            Err(trouble) if plain || trouble.failure.kind != FailureKind::Malformed => Err(trouble),
            Ok(()) | Err(_) => {
                Err(fault::passing(FailureKind::Cut, "the answer broke off in the middle"))
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        let answer = self.draft.answer();
        let spoke = self.spoke || !out.is_empty();
        if answer.finish == Finish::Refused && !spoke {
            return Err(fault::lasting(FailureKind::Refused, "the provider refused to answer"));
        }
        out.push(Chunk::Finished(answer));
        Ok(())
    }
}

/// What comes after the end is not looked at.
fn take(draft: &mut dyn Draft, data: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble> {
    if draft.stage() == Stage::Done { Ok(()) } else { draft.take(data, out) }
}

impl From<TooLong> for Trouble {
    fn from(TooLong: TooLong) -> Self {
        malformed("it is too long")
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}
