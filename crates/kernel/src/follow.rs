//! Where a follower stands in a session, and what it is given.
//!
//! A position is a sequence number and, while a step is being written, a byte offset into that
//! step's output. Text arrives as a signal first and as [`Event::TextAppended`] later; the cursor
//! makes sure that a follower gets every byte once, whichever came first.

use std::fmt;
use std::sync::Arc;

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

    /// Takes an event; gives what of it is new to this follower.
    pub fn take(&mut self, record: &Arc<Record>) -> Option<Item> {
        if record.seq <= self.seq {
            return None;
        }
        self.seq = record.seq;
        match &record.event {
            Event::TextAppended { turn, step, offset, channel, text } => {
                let text = self.unseen(*offset, text)?;
                Some(self.text((turn, step), *channel, text, record.at))
            }
            Event::StepStarted { .. } => {
                self.offset = 0;
                Some(Item::Event(Arc::clone(record)))
            }
            _ => Some(Item::Event(Arc::clone(record))),
        }
    }

    /// Takes text in flight. A piece that does not follow on what was taken is not for this follower
    /// yet: what is missing is about to be in the journal.
    pub fn take_text(&mut self, piece: &Piece) -> Option<Item> {
        if piece.offset > self.offset {
            return None;
        }
        let text = self.unseen(piece.offset, &piece.text)?;
        Some(self.text((&piece.turn, &piece.step), piece.channel, text, piece.at))
    }

    fn unseen(&mut self, offset: u64, text: &str) -> Option<Arc<str>> {
        let end = offset.saturating_add(text.len() as u64);
        if end <= self.offset {
            return None;
        }
        let seen = usize::try_from(self.offset.saturating_sub(offset)).unwrap_or(0);
        // An offset that a client made up may fall into a character: give the whole character.
        let from = text.floor_char_boundary(seen);
        self.offset = end;
        Some(text[from..].into())
    }

    fn text(&self, of: (&TurnId, &StepId), channel: Channel, text: Arc<str>, at: Time) -> Item {
        let (turn, step) = (of.0.clone(), of.1.clone());
        Item::Text { position: *self, turn, step, channel, text, at }
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

/// Text in flight: part of a step's output.
#[derive(Clone, Debug)]
pub struct Piece {
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
        /// The position after it.
        position: Cursor,
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
        /// Its output since the last time.
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
