//! An answer as far as it was read.

use quintet_kernel::model::{Answer, Channel, Chunk, FailureKind};

use crate::fault;
use crate::retry::Trouble;

/// Reads one answer of one family, event by event. Pure; this is the hot path of a turn.
pub(crate) trait Draft: Send {
    /// Takes the data of one event. What was understood before an error is in `out` all the same.
    fn take(&mut self, event: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble>;
    /// Takes an answer that came in one piece though a stream was asked for.
    fn take_whole(&mut self, body: &[u8], out: &mut Vec<Chunk>) -> Result<(), Trouble> {
        self.take(body, out)
    }
    /// How far it is.
    fn stage(&self) -> Stage;
    /// The end of it.
    fn answer(&mut self) -> Answer;
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing was said yet, so that it can be asked for again.
    Blank,
    /// The answer has begun.
    Begun,
    /// The answer's end is known; more may come, such as its usage.
    Whole,
    /// The provider said that this is all.
    Done,
}

/// Writes output down. Neighbouring pieces of one read that go to the same channel become one
/// [`Chunk::Output`].
#[derive(Debug, Default)]
pub(crate) struct Pen {
    /// How many bytes were written, both channels counted together.
    pub(crate) written: u64,
}

impl Pen {
    pub(crate) fn say(&mut self, to: Channel, text: &str, out: &mut Vec<Chunk>) {
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

pub(crate) fn malformed(error: impl std::fmt::Display) -> Trouble {
    let message = format!("the provider's answer makes no sense: {error}");
    fault::lasting(FailureKind::Malformed, message)
}
