//! One connection to the daemon: requests out, answers and notifications in.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::notice::Notice;
use crate::wire::{self, Request, RpcError, Size};
use crate::{Error, Settings, socket};

/// Maximum length of a message, in bytes; the protocol allows 10 MB.
const MESSAGE_BYTES_LIMIT: usize = 16 * 1024 * 1024;
/// Time for the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages that may wait to be read or written.
const QUEUE_CAPACITY: usize = 256;

/// A connection, which is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    settings: Settings,
    outgoing: Sender<Vec<u8>>,
    incoming: Receiver<Value>,
    pending: HashMap<u64, Request>,
    next: u64,
    /// Separate tasks read and write, so that neither blocks the other.
    _tasks: JoinSet<()>,
}

/// A message of the daemon.
#[derive(Debug)]
pub(crate) enum Incoming {
    Notice(Notice),
    Answer(Request, Result<Value, RpcError>),
    /// An unknown message.
    Unknown,
}

impl Connection {
    /// Finds the daemon, connects and makes the handshake; returns the daemon's answer to it. Fails if no
    /// daemon answers or the handshake fails.
    pub(crate) async fn open(settings: &Settings, size: Size) -> Result<(Self, Value), Error> {
        let mut link = Self::new(socket::open(settings).await?, settings);
        let hello = async {
            link.send(Request::Initialize(size)).await?;
            loop {
                if let (_, Incoming::Answer(_, answer)) =
                    link.next().await.ok_or(Error::ConnectionLost)?
                {
                    return answer.map_err(|fault| Error::Handshake(fault.message));
                }
            }
        };
        match timeout(HANDSHAKE_TIMEOUT, hello).await {
            Ok(server) => Ok((link, server?)),
            Err(_) => Err(Error::Handshake("timed out".into())),
        }
    }

    fn new(stream: UnixStream, settings: &Settings) -> Self {
        let (reader, writer) = stream.into_split();
        let (outgoing, to_write) = channel(QUEUE_CAPACITY);
        let (read, incoming) = channel(QUEUE_CAPACITY);
        let mut tasks = JoinSet::new();
        tasks.spawn(write_all(writer, to_write));
        tasks.spawn(read_all(reader, read));
        let (pending, settings) = (HashMap::new(), settings.clone());
        Self { settings, outgoing, incoming, pending, next: 1, _tasks: tasks }
    }

    pub(crate) async fn send(&mut self, request: Request) -> Result<(), Error> {
        let id = self.next;
        self.next += 1;
        let line = request.line(id, &self.settings);
        if request.is_answered() {
            self.pending.insert(id, request);
        }
        self.outgoing.send(line).await.map_err(|_| Error::ConnectionLost)
    }

    /// The next message, raw and decoded; `None` if the daemon has disconnected. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<(Value, Incoming)> {
        let message = self.incoming.recv().await?;
        Some(self.decoded(message))
    }

    /// A message that was already received.
    pub(crate) fn ready(&mut self) -> Option<(Value, Incoming)> {
        let message = self.incoming.try_recv().ok()?;
        Some(self.decoded(message))
    }

    fn decoded(&mut self, message: Value) -> (Value, Incoming) {
        let answer = wire::answer(&message).and_then(|(id, answer)| {
            let request = self.pending.remove(&id)?;
            Some(Incoming::Answer(request, answer))
        });
        let incoming = answer.or_else(|| Notice::read(&message).map(Incoming::Notice));
        (message, incoming.unwrap_or(Incoming::Unknown))
    }
}

async fn write_all(mut writer: OwnedWriteHalf, mut lines: Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if writer.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Reads until the daemon disconnects or sends a message beyond the limit.
async fn read_all(reader: OwnedReadHalf, read: Sender<Value>) {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    let mut line = Vec::new();
    loop {
        let Ok(kind) = reader.fill_buf().await else { return };
        let end = kind.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(kind.len(), |end| end + 1);
        line.extend_from_slice(&kind[..taken]);
        reader.consume(taken);
        if taken == 0 || line.len() > MESSAGE_BYTES_LIMIT {
            return;
        }
        if end.is_some() {
            // Messages that are not JSON can neither be shown nor answered.
            if let Ok(message) = serde_json::from_slice(&line)
                && read.send(message).await.is_err()
            {
                return;
            }
            line.clear();
        }
    }
}
