//! The calls that a client claimed on one connection.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Follower, Sessions};
use quintet_kernel::{CallId, ClientRef, Cursor, Event, Item, SessionId};
use tokio::task::JoinSet;

/// Time that a client that connected again waits for the end of its earlier connection.
const TAKE_OVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay before a session that could not be read is read again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The calls that a client claimed on one connection. [`HeldCalls::release`] must be called when the
/// connection ends.
///
/// A reloaded session considers every holder lost; a live connection then claims its calls again.
pub(crate) struct HeldCalls {
    sessions: Arc<dyn Sessions>,
    client: ClientRef,
    held: BTreeMap<SessionId, JoinSet<()>>,
}

impl fmt::Debug for HeldCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldCalls").field("client", &self.client).finish_non_exhaustive()
    }
}

impl HeldCalls {
    /// A connection without claims.
    pub(crate) fn new(sessions: Arc<dyn Sessions>, client: ClientRef) -> Self {
        Self { sessions, client, held: BTreeMap::new() }
    }

    /// The client on this connection.
    pub(crate) fn client(&self) -> &ClientRef {
        &self.client
    }

    /// Claims unclaimed calls of a session, all of them or none. True if this connection may run them; the
    /// claim is durable then. Fails if the session cannot be used.
    pub(crate) async fn claim(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
    ) -> Result<bool, Error> {
        self.submit(session, calls, false).await
    }

    /// Claims calls for a client that reconnected: also those that it holds on a lost connection.
    pub(crate) async fn resume(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
    ) -> Result<bool, Error> {
        self.submit(session, calls, true).await
    }

    /// Claims calls for a client that may still hold them on an earlier connection, which is about to end.
    pub(crate) async fn take_over(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
    ) -> Result<bool, Error> {
        if self.resume(session, calls.clone()).await? {
            return Ok(true);
        }
        for call in &calls {
            if !self.may_return_result(session, call).await? {
                return Ok(false);
            }
        }
        self.resume(session, calls).await
    }

    async fn submit(
        &mut self,
        session: &SessionId,
        calls: Vec<CallId>,
        came_back: bool,
    ) -> Result<bool, Error> {
        // Recorded before the claim, because a caller that stops waiting may still hold the calls.
        self.held.entry(session.clone()).or_default();
        let by = self.client.clone();
        let claim = Command::ClaimCalls { calls: calls.clone(), by: by.clone(), came_back };
        let receipt = match self.sessions.submit(session, claim).await {
            Ok(receipt) => receipt,
            Err(Error::Refused(_) | Error::NotFound(_)) => return Ok(false),
            Err(error) => return Err(error),
        };
        if let Some(last) = receipt.records.last() {
            let follow = self.sessions.follow(session, Cursor::after(last.seq)).await?;
            let renewal =
                ClaimRenewal { sessions: Arc::clone(&self.sessions), session: session.clone(), by };
            let renewals = self.held.entry(session.clone()).or_default();
            while renewals.try_join_next().is_some() {}
            renewals.spawn(renewal.run(follow, calls.into_iter().collect()));
        }
        Ok(true)
    }

    /// True if the client may return a call's result: no other client holds the call, or the client itself does
    /// on a connection that is about to end.
    pub(crate) async fn may_return_result(
        &self,
        session: &SessionId,
        call: &CallId,
    ) -> Result<bool, Error> {
        let state = self.sessions.view(session).await?;
        let claim = state.open.as_ref().and_then(|open| open.call(call)?.claim.clone());
        let head = state.head;
        drop(state);
        let Some(claim) = claim.filter(|claim| !claim.is_held_by(&self.client)) else {
            return Ok(true);
        };
        if claim.by.name != self.client.name {
            return Ok(false);
        }
        let mut follow = self.sessions.follow(session, Cursor::after(head)).await?;
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

    /// True if there is nothing to release.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Starts the grace time of the claims, because the connection ended.
    pub(crate) async fn release(&mut self) {
        for (session, mut renewals) in std::mem::take(&mut self.held) {
            renewals.shutdown().await;
            let disconnect = Command::Disconnect { client: self.client.clone() };
            match self.sessions.submit(&session, disconnect).await {
                // A restart starts the grace time as well.
                Ok(_) | Err(Error::NotFound(_) | Error::Closing) => {}
                Err(error) => tracing::warn!(%session, %error, "releasing claims failed"),
            }
        }
    }
}

/// Renews the claims of a live connection.
struct ClaimRenewal {
    sessions: Arc<dyn Sessions>,
    session: SessionId,
    by: ClientRef,
}

impl ClaimRenewal {
    /// Claims calls again when their holder is considered lost, until they end.
    async fn run(self, mut follow: Box<dyn Follower>, mut calls: HashSet<CallId>) {
        while !calls.is_empty() {
            match follow.next().await {
                Ok(Some(items)) => {
                    for item in items {
                        self.handle(&item, &mut calls).await;
                    }
                }
                // After a storage failure the session is reloaded, and then considers its holders lost.
                Err(Error::Storage(_)) => tokio::time::sleep(RETRY_INTERVAL).await,
                Ok(None) | Err(_) => return,
            }
        }
    }

    async fn handle(&self, item: &Item, calls: &mut HashSet<CallId>) {
        let Item::Event(record) = item else { return };
        match &record.event {
            Event::ClaimHolderLost { call, by, .. } if *by == self.by => {
                self.claim_again(call).await;
            }
            Event::ClaimReleased { call, .. } | Event::CallCompleted { call, .. } => {
                calls.remove(call);
            }
            _ => {}
        }
    }

    async fn claim_again(&self, call: &CallId) {
        let (calls, by) = (vec![call.clone()], self.by.clone());
        let claim = Command::ClaimCalls { calls, by, came_back: true };
        match self.sessions.submit(&self.session, claim).await {
            Ok(_) | Err(Error::Refused(_) | Error::NotFound(_) | Error::Closing) => {}
            Err(error) => tracing::warn!(%call, %error, "renewing a claim failed"),
        }
    }
}

/// `Some(true)` if the holder of a call lost its connection, `Some(false)` if the call ended.
fn lost(item: &Item, call: &CallId) -> Option<bool> {
    let Item::Event(record) = item else { return None };
    match &record.event {
        Event::ClaimHolderLost { call: lost, .. } => (lost == call).then_some(true),
        Event::CallCompleted { call: ended, .. } => (ended == call).then_some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
