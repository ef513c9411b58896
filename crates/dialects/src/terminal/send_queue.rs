//! The queue of messages to a client: in order, written by one task, and short.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::{Permit, Receiver, Sender};

use super::encode::ClientPace;

/// Messages that wait to be written.
#[derive(Debug)]
pub(super) struct SendQueue {
    queue: Sender<Vec<u8>>,
    blocked: Arc<AtomicBool>,
}

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct Disconnected;

impl SendQueue {
    /// A queue, and a flag that its writer sets while the client does not read.
    pub(super) fn new(queue: Sender<Vec<u8>>) -> (Self, Arc<AtomicBool>) {
        let blocked = Arc::new(AtomicBool::new(false));
        (Self { queue, blocked: Arc::clone(&blocked) }, blocked)
    }

    /// Sends messages, one per line.
    pub(super) async fn send(&self, messages: &[String]) -> Result<(), Disconnected> {
        if messages.is_empty() {
            Ok(())
        } else {
            self.queue.send(lines(messages)).await.map_err(|_| Disconnected)
        }
    }

    /// Waits until there is space for more.
    pub(super) async fn permit(&self) -> Result<SendPermit<'_>, Disconnected> {
        let blocked = self.blocked.load(Ordering::Relaxed);
        let pace = if blocked { ClientPace::Behind } else { ClientPace::Current };
        let permit = self.queue.reserve().await.map_err(|_| Disconnected)?;
        Ok(SendPermit { permit, pace })
    }
}

/// Space for more messages.
#[derive(Debug)]
pub(super) struct SendPermit<'a> {
    permit: Permit<'a, Vec<u8>>,
    /// Whether the client reads fast enough.
    pub(super) pace: ClientPace,
}

impl SendPermit<'_> {
    pub(super) fn fill(self, messages: &[String]) {
        if !messages.is_empty() {
            self.permit.send(lines(messages));
        }
    }
}

fn lines(messages: &[String]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(messages.iter().map(|message| message.len() + 1).sum());
    for message in messages {
        bytes.extend_from_slice(message.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

/// Writes queued messages until the queue closes or the client disconnects.
pub(super) async fn write(
    mut queue: Receiver<Vec<u8>>,
    writer: OwnedWriteHalf,
    blocked: Arc<AtomicBool>,
) {
    while let Some(bytes) = queue.recv().await {
        if write_all(&writer, &bytes, &blocked).await.is_err() {
            return;
        }
    }
}

async fn write_all(writer: &OwnedWriteHalf, bytes: &[u8], blocked: &AtomicBool) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match writer.try_write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                blocked.store(true, Ordering::Relaxed);
                writer.writable().await?;
            }
            Err(error) => return Err(error),
        }
    }
    blocked.store(false, Ordering::Relaxed);
    Ok(())
}
