//! A connection that is reopened when it breaks.

use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::connection::{Connection, Incoming};
use crate::wire::{Request, Size};
use crate::{Error, Settings};

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(200);
const RETRY_DELAY_LIMIT: Duration = Duration::from_secs(5);

/// The number of attempts to reconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryLimit {
    Tries(u32),
    Unlimited,
}

type Connecting = Pin<Box<dyn Future<Output = Result<(Connection, Value), Error>> + Send>>;

/// A connection that is reopened when it breaks.
pub(crate) struct Reconnecting {
    settings: Settings,
    retry_limit: RetryLimit,
    state: State,
}

enum State {
    Up(Box<Connection>),
    Down(Connecting),
}

/// A message or a change of the connection.
#[derive(Debug)]
pub(crate) enum Update {
    Received(Value, Incoming),
    Lost,
    /// The connection is open again; holds the answer to the handshake.
    Back(Value),
}

impl Reconnecting {
    pub(crate) async fn open(
        settings: &Settings,
        size: Size,
        retry_limit: RetryLimit,
    ) -> Result<(Self, Value), Error> {
        let (link, server) = Connection::open(settings, size).await?;
        Ok((
            Self { settings: settings.clone(), retry_limit, state: State::Up(Box::new(link)) },
            server,
        ))
    }

    /// Sends a request. Without a connection the request is dropped; `next` reports the loss.
    pub(crate) async fn send(&mut self, request: Request) {
        if let State::Up(link) = &mut self.state {
            // A lost connection is detected by the next read.
            let _ = link.send(request).await;
        }
    }

    /// Waits for the next update. Fails once the retry limit is reached. Cancel safe.
    pub(crate) async fn next(&mut self, size: Size) -> Result<Update, Error> {
        match &mut self.state {
            State::Up(link) => match link.next().await {
                Some((message, heard)) => Ok(Update::Received(message, heard)),
                None => {
                    self.renew(size);
                    Ok(Update::Lost)
                }
            },
            State::Down(connect) => {
                let (link, server) = connect.await?;
                self.state = State::Up(Box::new(link));
                Ok(Update::Back(server))
            }
        }
    }

    /// A message that was already received.
    pub(crate) fn ready(&mut self) -> Option<Update> {
        match &mut self.state {
            State::Up(link) => {
                link.ready().map(|(message, heard)| Update::Received(message, heard))
            }
            State::Down(_) => None,
        }
    }

    /// Closes the connection and opens another one.
    pub(crate) fn renew(&mut self, size: Size) {
        self.state = State::Down(self.connect(size));
    }

    fn connect(&self, size: Size) -> Connecting {
        let (settings, retry_limit) = (self.settings.clone(), self.retry_limit);
        Box::pin(async move {
            let (mut wait, mut tried) = (FIRST_RETRY_DELAY, 0);
            loop {
                match Connection::open(&settings, size).await {
                    Ok(found) => return Ok(found),
                    Err(error) if RetryLimit::Tries(tried) == retry_limit => return Err(error),
                    Err(_) => sleep(wait).await,
                }
                tried += 1;
                wait = (wait * 2).min(RETRY_DELAY_LIMIT);
            }
        })
    }
}
