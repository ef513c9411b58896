//! The queue of messages to an editor: in order, written by one task, and short.

use tokio::sync::mpsc::{Permit, Sender};

/// Messages that wait to be written.
#[derive(Clone, Debug)]
pub(in super::super) struct SendQueue(Sender<Vec<u8>>);

/// The editor has disconnected.
#[derive(Debug)]
pub(super) struct Gone;

impl SendQueue {
    pub(in super::super) fn new(sender: Sender<Vec<u8>>) -> Self {
        Self(sender)
    }

    /// Sends messages, one per line.
    pub(super) async fn send(&self, messages: &[String]) -> Result<(), Gone> {
        if messages.is_empty() {
            return Ok(());
        }
        self.0.send(bytes(messages)).await.map_err(|_| Gone)
    }

    /// Waits until there is space for more.
    pub(super) async fn permit(&self) -> Result<Permit<'_, Vec<u8>>, Gone> {
        self.0.reserve().await.map_err(|_| Gone)
    }
}

/// Encodes messages, one per line.
pub(super) fn bytes(messages: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(messages.iter().map(|message| message.len() + 1).sum());
    for message in messages {
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}
