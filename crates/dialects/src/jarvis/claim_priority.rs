//! The order in which streams claim a call: first that of the desktop that sent the message, then those
//! that only follow the session.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::{CallId, SessionId};
use tokio::sync::watch;

/// Time to wait for a stream with priority: its client may have stopped reading.
const PRIORITY_TIMEOUT: Duration = Duration::from_secs(2);

/// The calls that a stream has tried to claim.
type Tried = HashSet<CallId>;

/// The streams of desktops that sent a message, by session.
#[derive(Debug, Default)]
pub(super) struct ClaimPriorities(Mutex<Vec<(SessionId, watch::Receiver<Tried>)>>);

/// Gives the stream of a desktop that sent a message priority for as long as this exists.
#[derive(Debug)]
pub(super) struct ClaimPriority(watch::Sender<Tried>);

impl ClaimPriority {
    /// Records that the stream has tried to claim a call, so that others may try.
    pub(super) fn tried(&self, call: &CallId) {
        self.0.send_modify(|tried| {
            tried.insert(call.clone());
        });
    }
}

impl ClaimPriorities {
    /// Gives priority to a desktop that sends a message to a session.
    pub(super) fn add(&self, session: &SessionId) -> ClaimPriority {
        let (sender, receiver) = watch::channel(Tried::new());
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|(_, stream)| stream.has_changed().is_ok());
        streams.push((session.clone(), receiver));
        ClaimPriority(sender)
    }

    /// Waits until every stream with priority has tried to claim a call, at most for the timeout.
    pub(super) async fn wait_for(&self, session: &SessionId, call: &CallId) {
        let tried = async {
            for mut stream in self.of(session) {
                // A stream that has ended claims nothing.
                let _ = stream.wait_for(|tried| tried.contains(call)).await;
            }
        };
        let _ = tokio::time::timeout(PRIORITY_TIMEOUT, tried).await;
    }

    fn of(&self, session: &SessionId) -> Vec<watch::Receiver<Tried>> {
        let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_session = streams.iter().filter(|(id, _)| id == session);
        of_session.map(|(_, stream)| stream.clone()).collect()
    }
}
