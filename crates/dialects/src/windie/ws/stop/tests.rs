//! Stops that cannot be carried out.

use std::path::Path;

use quintet_kernel::Cursor;
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::port::{BoxFuture, Follower, Receipt, StorageError};
use quintet_kernel::session_summary::SessionSummary;

use super::*;

/// Sessions that cannot be reached.
struct Unavailable;

fn unavailable<T: Send + 'static>() -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(async { Err(StorageError::Unavailable("the disk is full".into()).into()) })
}

impl Sessions for Unavailable {
    fn submit(&self, _: &SessionId, _: Command) -> BoxFuture<'_, Result<Receipt, Error>> {
        unavailable()
    }

    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unavailable()
    }

    fn follow(&self, _: &SessionId, _: Cursor) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        unavailable()
    }

    fn summary(&self, _: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        unavailable()
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unavailable()
    }

    fn recent(
        &self,
        _: Option<&Path>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unavailable()
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unavailable()
    }
}

#[tokio::test]
async fn a_stop_that_failed_silences_nobody() {
    let (session, turn) = (SessionId::named("s".into()), TurnId::named("t".into()));
    let stop = Stopping { session, turn, name: "q".into(), done: false };
    let stops = cancel(&Unavailable, vec![stop]).await;
    assert!(stops.iter().all(|stop| !stop.done));
}
