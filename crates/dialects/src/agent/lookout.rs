//! Which sessions have something new, for connections that want to hear of all of them.

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use quintet_kernel::port::Hints;
use tokio::sync::broadcast::{Receiver, Sender, channel, error::RecvError};

/// How many hints wait for a connection; one that is slower looks at the list of sessions instead.
const WAITING: usize = 1024;

/// Tells connections which sessions have something new.
#[derive(Clone, Debug)]
pub struct Lookout {
    hints: Sender<Hint>,
}

/// A session and its newest event.
type Hint = (SessionId, Seq);

impl Default for Lookout {
    fn default() -> Self {
        Self { hints: channel(WAITING).0 }
    }
}

impl Hints for Lookout {
    fn published(&self, session: &SessionId, head: Seq) {
        // Nobody may be listening.
        let _ = self.hints.send((session.clone(), head));
    }

    fn erased(&self, _: &SessionId) {}
}

impl Lookout {
    pub(super) fn watch(&self) -> Watch {
        Watch { hints: Some(self.hints.subscribe()) }
    }
}

/// What one connection hears; nothing unless it wants to.
#[derive(Debug, Default)]
pub(super) struct Watch {
    hints: Option<Receiver<Hint>>,
}

/// Where there is something new.
#[derive(Debug)]
pub(super) enum Seen {
    /// In this session, up to this event.
    In(SessionId, Seq),
    /// In more sessions than could be counted.
    Somewhere,
}

impl Watch {
    pub(super) fn is_on(&self) -> bool {
        self.hints.is_some()
    }

    /// The next hint; never, where nobody listens.
    pub(super) async fn next(&mut self) -> Seen {
        let Some(hints) = &mut self.hints else { return std::future::pending().await };
        match hints.recv().await {
            Ok((session, head)) => Seen::In(session, head),
            Err(RecvError::Lagged(_)) => Seen::Somewhere,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
