//! What a client has heard for certain. What was written to a connection may never have left this
//! machine, so the client is called when a turn is over: its answer comes after everything that was sent
//! before the call.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;

use super::super::room::{Client, Room, Seat};

/// What was sent to a client and not answered yet.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    /// How often it was called.
    calls: u64,
    /// How far it was sent which conversation, by the call that is to be answered.
    called: HashMap<u64, Place>,
    /// How far it was sent each conversation.
    sent: HashMap<String, Place>,
}

/// A place in a conversation.
type Place = (Arc<Room>, u64);

impl Echoes {
    /// Notes what was sent; gives what to call the client with, if it is to be called.
    pub(super) fn sent(&mut self, seat: &Seat) -> Option<Bytes> {
        let place = (Arc::clone(&seat.room), seat.position());
        self.sent.insert(seat.room.session.to_string(), place.clone());
        if seat.room.busy() > 0 {
            return None;
        }
        self.calls += 1;
        self.called.insert(self.calls, place);
        Some(Bytes::copy_from_slice(&self.calls.to_be_bytes()))
    }

    /// The client has answered a call.
    pub(super) fn came(&mut self, echo: &[u8], agent: &Client) {
        let Ok(call) = <[u8; 8]>::try_from(echo) else { return };
        if let Some((room, up_to)) = self.called.remove(&u64::from_be_bytes(call)) {
            room.heard(agent, up_to);
        }
    }

    /// The client takes its leave: it wants to hear no more of what it was sent.
    pub(super) fn parted(&mut self, agent: &Client) {
        for (room, up_to) in self.sent.values() {
            room.heard(agent, *up_to);
        }
    }
}
