//! The result of a command.

use std::sync::Arc;

use crate::event::{Event, Record, Seq};
use crate::id::{MessageId, SessionId, TurnId};

/// The durable result of a command.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The session.
    pub session: SessionId,
    /// The events.
    pub records: Vec<Arc<Record>>,
}

/// The message that a command added, and the turn that answers it.
#[derive(Clone, Copy, Debug)]
pub struct AddedMessage<'a> {
    /// The number of its event.
    pub seq: Seq,
    /// The message.
    pub message: &'a MessageId,
    /// The turn.
    pub turn: &'a TurnId,
    /// The number of the turn in its session, from 1 on.
    pub nth: u64,
    /// True if the turn started immediately, false if it waits for another one.
    pub started: bool,
}

impl Receipt {
    /// The message that was added; `None` if the command added none or repeated an earlier one.
    pub fn message(&self) -> Option<AddedMessage<'_>> {
        let events = || self.records.iter().map(|record| (record.seq, &record.event));
        let (seq, message, turn, nth) = events().find_map(|(seq, event)| {
            let Event::MessageAdded { message, turn, nth, .. } = event else { return None };
            Some((seq, message, turn, *nth))
        })?;
        let starts = |event: &Event| matches!(event, Event::TurnStarted { turn: started, .. } if started == turn);
        let started = events().any(|(_, event)| starts(event));
        Some(AddedMessage { seq, message, turn, nth, started })
    }

    /// The turn that answers the message that was added.
    pub fn turn(&self) -> Option<&TurnId> {
        self.message().map(|added| added.turn)
    }
}
