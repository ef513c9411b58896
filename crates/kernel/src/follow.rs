//! Where a follower stands in a session, and what it is given.
//!
//! A position is a sequence number and, while a step is being written, a byte offset into that
//! step's output. Text arrives as a [`Delta`] in flight first and in an [`Event::TextAppended`] later,
//! which keeps the lengths of the pieces. An [`ItemReader`] gives a follower every piece once,
//! whichever came first, with the same cuts and positions: live, late or after a crash.

use std::sync::Arc;
use std::{fmt, iter};

use crate::event::{Event, Record, Seq};
use crate::id::{CallId, StepId, TurnId};
use crate::model::Channel;
use crate::time::Time;

/// A position in a session, written `seq` or `seq.offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The last event that was taken.
    pub seq: Seq,
    /// Bytes of the open step's output that were taken.
    pub offset: u64,
}

impl Cursor {
    /// Before everything.
    pub const START: Self = Self { seq: 0, offset: 0 };

    /// Right after an event.
    pub fn after(seq: Seq) -> Self {
        Self { seq, offset: 0 }
    }

    /// Reads `seq` or `seq.offset`.
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, offset) = text.split_once('.').unwrap_or((text, "0"));
        Some(Self { seq: digits(seq)?, offset: digits(offset)? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            0 => write!(f, "{}", self.seq),
            offset => write!(f, "{}.{offset}", self.seq),
        }
    }
}

/// Turns what happens in a session into the items of one follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemReader {
    cursor: Cursor,
    /// The last event that was taken and is not text. Positions of text count from there, because
    /// how its pieces are gathered into events is not known when they are shown.
    last_event: Seq,
}

/// Where text comes from.
#[derive(Clone, Copy)]
struct Source<'a> {
    turn: &'a TurnId,
    step: &'a StepId,
    channel: Channel,
    at: Time,
}

impl From<Cursor> for ItemReader {
    fn from(cursor: Cursor) -> Self {
        Self { cursor, last_event: cursor.seq }
    }
}

impl ItemReader {
    /// Where the follower stands.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Takes an event; adds what of it is new to this follower.
    pub fn take(&mut self, record: &Arc<Record>, items: &mut Vec<Item>) {
        if record.seq <= self.cursor.seq {
            return;
        }
        self.cursor.seq = record.seq;
        match &record.event {
            Event::TextAppended { turn, step, offset, channel, text, pieces } => {
                let source = Source { turn, step, channel: *channel, at: record.at };
                let mut offset = *offset;
                for delta in cut(text, pieces) {
                    items.extend(self.text(source, offset, delta, None));
                    offset = offset.saturating_add(delta.len() as u64);
                }
            }
            event => {
                if let Event::StepStarted { .. } = event {
                    self.cursor.offset = 0;
                }
                self.last_event = record.seq;
                items.push(Item::Event(Arc::clone(record)));
            }
        }
    }

    /// Takes text in flight. A piece that does not follow on what was taken is not for this follower
    /// yet: what is missing is about to be in the journal.
    pub fn take_text(&mut self, delta: &Delta) -> Option<Item> {
        if delta.offset > self.cursor.offset {
            return None;
        }
        let Delta { turn, step, offset, channel, text, at } = delta;
        let source = Source { turn, step, channel: *channel, at: *at };
        self.text(source, *offset, text, Some(text))
    }

    /// What is new of a piece; all of it is shared, where somebody else has it already.
    fn text(
        &mut self,
        source: Source<'_>,
        offset: u64,
        text: &str,
        shared: Option<&Arc<str>>,
    ) -> Option<Item> {
        let end = offset.saturating_add(text.len() as u64);
        if end <= self.cursor.offset {
            return None;
        }
        let new = unseen_text(text, offset, self.cursor.offset);
        self.cursor.offset = end;
        let text = match shared {
            Some(whole) if whole.len() == new.len() => Arc::clone(whole),
            Some(_) | None => new.into(),
        };
        Some(Item::Text {
            position: Cursor { seq: self.last_event, offset: end },
            seq: self.cursor.seq,
            turn: source.turn.clone(),
            step: source.step.clone(),
            channel: source.channel,
            text,
            at: source.at,
        })
    }
}

/// What of a text that begins at `offset` is new to a client that has everything before `seen`. A number
/// that a client made up may fall into a character: then the whole character is new.
pub fn unseen_text(text: &str, offset: u64, seen: u64) -> &str {
    let known = usize::try_from(seen.saturating_sub(offset)).unwrap_or(usize::MAX);
    &text[text.floor_char_boundary(known)..]
}

/// The pieces of a text. Where a length does not fit the text, the rest of it is one piece.
fn cut<'a>(text: &'a str, lengths: &'a [u32]) -> impl Iterator<Item = &'a str> {
    let (mut rest, mut lengths) = (text, lengths.iter());
    iter::from_fn(move || {
        let length = lengths.next().and_then(|length| usize::try_from(*length).ok());
        let fits = length.filter(|length| *length > 0).and_then(|at| rest.split_at_checked(at));
        let (delta, after) = fits.unwrap_or((rest, ""));
        rest = after;
        (!delta.is_empty()).then_some(delta)
    })
}

/// Text in flight: part of a step's output.
#[derive(Clone, Debug)]
pub struct Delta {
    /// The turn.
    pub turn: TurnId,
    /// The step.
    pub step: StepId,
    /// Where it begins in the step's output.
    pub offset: u64,
    /// Which kind of output.
    pub channel: Channel,
    /// The text.
    pub text: Arc<str>,
    /// When it arrived.
    pub at: Time,
}

/// What a follower is given.
#[derive(Clone, Debug)]
pub enum Item {
    /// Something happened. Text never comes this way, see [`Item::Text`].
    Event(Arc<Record>),
    /// The step wrote more; durable already or about to be.
    Text {
        /// The position after it, the same for every follower.
        position: Cursor,
        /// The last event that the follower has read with it: the one that has it, or the one before
        /// it while it is in flight.
        seq: Seq,
        /// The turn.
        turn: TurnId,
        /// The step.
        step: StepId,
        /// Which kind of output.
        channel: Channel,
        /// The text.
        text: Arc<str>,
        /// When.
        at: Time,
    },
    /// A running call says something. Not kept: the whole of it is in the call's outcome.
    Progress {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The output since the last progress.
        text: Arc<str>,
        /// When.
        at: Time,
    },
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
