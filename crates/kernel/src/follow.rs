//! Positions of followers in a session, and the items they receive.
//!
//! A position is a sequence number and, while a step is streaming, a byte offset into that
//! step's output. Text arrives first as a [`Delta`] and later in an [`Event::TextAppended`],
//! which records the lengths of the deltas. An [`ItemReader`] passes each delta on once,
//! whichever came first, with the same boundaries and positions: live, later or after a crash.

use std::sync::Arc;
use std::{fmt, iter};

use crate::event::{Event, Record, Seq};
use crate::id::{CallId, StepId, TurnId};
use crate::model::Channel;
use crate::time::Time;

/// A position in a session, written `seq` or `seq.offset`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The last event that was received.
    pub seq: Seq,
    /// Bytes of the open step's output that were received.
    pub offset: u64,
}

impl Cursor {
    /// The position before the first event.
    pub const START: Self = Self { seq: 0, offset: 0 };

    /// The position right after an event.
    pub fn after(seq: Seq) -> Self {
        Self { seq, offset: 0 }
    }

    /// Parses `seq` or `seq.offset`.
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

/// Converts events and deltas into the items of one follower, without duplicates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemReader {
    cursor: Cursor,
    /// The last event received that is not text. Positions of text count from there,
    /// because it is not known at streaming time how deltas are grouped into events.
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
    /// The position after the last item.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Adds the items of an event that are new to this follower.
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

    /// The item of a delta, if it is new. A delta that leaves a gap is skipped: the missing
    /// text is about to be in the journal.
    pub fn take_text(&mut self, delta: &Delta) -> Option<Item> {
        if delta.offset > self.cursor.offset {
            return None;
        }
        let Delta { turn, step, offset, channel, text, at } = delta;
        let source = Source { turn, step, channel: *channel, at: *at };
        self.text(source, *offset, text, Some(text))
    }

    /// The new part of a delta; shares the allocation if all of it is new.
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

/// The part of a text starting at `offset` that is new to a client which has everything before
/// `seen`. If `seen` is inside a character, the whole character counts as new.
pub fn unseen_text(text: &str, offset: u64, seen: u64) -> &str {
    let known = usize::try_from(seen.saturating_sub(offset)).unwrap_or(usize::MAX);
    &text[text.floor_char_boundary(known)..]
}

/// Splits a text into pieces of these lengths. The rest is one piece if a length does not fit.
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

/// Streamed text: a part of a step's output.
#[derive(Clone, Debug)]
pub struct Delta {
    /// The turn.
    pub turn: TurnId,
    /// The step.
    pub step: StepId,
    /// Position in the step's output, in bytes.
    pub offset: u64,
    /// The kind of output.
    pub channel: Channel,
    /// The text.
    pub text: Arc<str>,
    /// When it arrived.
    pub at: Time,
}

/// What a follower receives.
#[derive(Clone, Debug)]
pub enum Item {
    /// An event. Text never arrives this way, see [`Item::Text`].
    Event(Arc<Record>),
    /// Output of the step, durable already or shortly after.
    Text {
        /// The position after the text, the same for every follower.
        position: Cursor,
        /// The last event that the follower has received.
        seq: Seq,
        /// The turn.
        turn: TurnId,
        /// The step.
        step: StepId,
        /// The kind of output.
        channel: Channel,
        /// The text.
        text: Arc<str>,
        /// When the text was streamed.
        at: Time,
    },
    /// Output of a running call. Not stored: all of it is in the call's outcome.
    Progress {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The output since the last progress item.
        text: Arc<str>,
        /// When the output was reported.
        at: Time,
    },
}

fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
