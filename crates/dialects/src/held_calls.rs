//! The calls that a client runs on one connection.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::{CallId, ClientRef, Cursor, Event, Item, SessionId};

/// How long a client that connected again is given for the end of its earlier connection.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(2);

/// The calls that a client claimed on one connection. [`HeldCalls::release`] must follow its end.
pub(crate) struct HeldCalls {
    sessions: Arc<dyn Sessions>,
    client: ClientRef,
    held: BTreeSet<SessionId>,
}

impl fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldCalls").field("client", &self.client).finish_non_exhaustive()
    }
}

impl HeldCalls {
    /// A connection of a client that has claimed nothing yet.
    pub(crate) fn new(sessions: Arc<dyn Sessions>, client: ClientRef) -> Self {
        Self { sessions, client, held: BTreeSet::new() }
    }

    /// The client on this connection.
    pub(crate) fn client(&self) -> &ClientRef {
        &self.client
    }

    /// Claims calls of a session, all of them or none. True if this connection may run them; durable
    /// then. Fails if the session cannot be used.
    pub(crate) async fn claim(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
    ) -> Result<bool, Error> {
        let claim = Command::Claim { calls, by: self.client.clone() };
        match self.sessions.submit(session, claim).await {
            Ok(_) => {
                self.held.insert(session.clone());
                Ok(true)
            }
            Err(Error::Refused(_) | Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The same for a client that may hold the calls on an earlier connection, which is about to end.
    pub(crate) async fn take_over(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
    ) -> Result<bool, Error> {
        if self.claim(session, calls.clone()).await? {
            return Ok(true);
        }
        for call in &calls {
            if !self.inherits(session, call).await? {
                return Ok(false);
            }
        }
        self.claim(session, calls).await
    }

    /// True if the client may return a call's result: nobody else has the call, or the client itself
    /// on a connection that ends within a moment.
    pub(crate) async fn inherits(&self, session: &SessionId, call: &CallId) -> Result<bool, Error> {
        let state = self.sessions.view(session).await?;
        let claim = state.open.as_ref().and_then(|open| open.call(call)?.claim.clone());
        let Some(claim) = claim.filter(|claim| !claim.is_held_by(&self.client)) else {
            return Ok(true);
        };
        if claim.by.name != self.client.name {
            return Ok(false);
        }
        let mut follow = self.sessions.follow(session, Cursor::after(state.head)).await?;
        let lost = async {
            while let Some(items) = follow.next().await? {
                if let Some(lost) = items.iter().find_map(|item| lost(item, call)) {
                    return Ok(lost);
                }
            }
            Ok(false)
        };
        tokio::time::timeout(TAKE_OVER_TIMEOUT, lost).await.unwrap_or(Ok(false))
    }

    /// True if there is anything to release.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Starts the grace time of what the client still holds, because its connection is gone.
    pub(crate) async fn release(&mut self) {
        for session in std::mem::take(&mut self.held) {
            let gone = Command::Disconnect { client: self.client.clone() };
            match self.sessions.submit(&session, gone).await {
                // A restart starts the grace time as well.
                Ok(_) | Err(Error::NotFound(_) | Error::Closing) => {}
                Err(error) => tracing::warn!(%session, %error, "claims were not released"),
            }
        }
    }
}

/// True once the holder of a call has lost its connection, false once the call is over.
fn lost(item: &Item, call: &CallId) -> Option<bool> {
    let Item::Event(record) = item else { return None };
    match &record.event {
        Event::ClaimHolderLost { call: lost, .. } => (lost == call).then_some(true),
        Event::CallCompleted { call: over, .. } => (over == call).then_some(false),
        _ => None,
    }
}
