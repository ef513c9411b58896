//! Messages on their way to a client: in order, by one writer, and few of them at a time.

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
    stuck: Arc<AtomicBool>,
}

/// The client is gone.
#[derive(Debug)]
pub(super) struct Gone;

impl SendQueue {
    /// A queue, and the flag that its writer sets while the client reads nothing.
    pub(super) fn new(queue: Sender<Vec<u8>>) -> (Self, Arc<AtomicBool>) {
        let stuck = Arc::new(AtomicBool::new(false));
        (Self { queue, stuck: Arc::clone(&stuck) }, stuck)
    }

    /// Sends some messages, a line each.
    pub(super) async fn send(&self, messages: &[String]) -> Result<(), Gone> {
        if messages.is_empty() {
            Ok(())
        } else {
            self.queue.send(lines(messages)).await.map_err(|_| Gone)
        }
    }

    /// Waits until there is space for more.
    pub(super) async fn permit(&self) -> Result<SendPermit<'_>, Gone> {
        let stuck = self.stuck.load(Ordering::Relaxed);
        let pace = if stuck { ClientPace::Behind } else { ClientPace::Current };
        let permit = self.queue.reserve().await.map_err(|_| Gone)?;
        Ok(SendPermit { permit, pace })
    }
}

/// Space for more messages.
#[derive(Debug)]
pub(super) struct SendPermit<'a> {
    permit: Permit<'a, Vec<u8>>,
    /// Whether the client keeps up.
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

/// Writes what is queued, until there is no more or the client is gone.
pub(super) async fn write(
    mut queue: Receiver<Vec<u8>>,
    writer: OwnedWriteHalf,
    stuck: Arc<AtomicBool>,
) {
    while let Some(bytes) = queue.recv().await {
        if write_all(&writer, &bytes, &stuck).await.is_err() {
            return;
        }
    }
}

async fn write_all(writer: &OwnedWriteHalf, bytes: &[u8], stuck: &AtomicBool) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match writer.try_write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                stuck.store(true, Ordering::Relaxed);
                writer.writable().await?;
            }
            Err(error) => return Err(error),
        }
    }
    stuck.store(false, Ordering::Relaxed);
    Ok(())
}
