//! Cancels runs that were in progress when the daemon last stopped and whose clients have disconnected.

use std::sync::Arc;

use quintet_kernel::event::{Event, Seq};
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::{Cursor, Item, SessionId};
use tokio_util::sync::CancellationToken;

use super::decode::conversation::FRONT_END;
use super::serve::cancel_turn;
use super::stored_response::BACKGROUND;
use crate::dialect::Services;

/// Cancels such runs once. Background runs continue, and so do runs that wait for results.
pub(super) async fn cancel_abandoned(services: Arc<Services>, closing: CancellationToken) {
    let open = match services.directory.open().await {
        Ok(open) => open,
        Err(error) => {
            tracing::warn!(%error, "listing open runs failed; runs without a client may continue");
            Vec::new()
        }
    };
    for session in open {
        if let Err(error) = check(&services, &session).await {
            tracing::warn!(%session, %error, "cancelling a run without a client failed");
        }
    }
    closing.cancelled().await;
}

/// Cancels the turn of a session if its client has disconnected.
async fn check(services: &Services, session: &SessionId) -> Result<(), Error> {
    let sessions = &*services.sessions;
    if !sessions.summary(session).await?.labels.contains_key(FRONT_END) {
        return Ok(());
    }
    let state = sessions.view(session).await?;
    let open = state.open.as_ref().filter(|open| !open.waits_for_client());
    let Some(turn) = open.and_then(|open| state.turn(&open.id)) else { return Ok(()) };
    let (turn, begins) = (turn.id.clone(), turn.begins);
    drop(state);
    if had_client(sessions, session, begins).await? {
        cancel_turn(sessions, session, turn).await;
    }
    Ok(())
}

/// True if the last request of a turn was one that waits for its answer.
async fn had_client(
    sessions: &dyn Sessions,
    session: &SessionId,
    begins: Seq,
) -> Result<bool, Error> {
    let mut follow = sessions.follow(session, Cursor::after(begins - 1)).await?;
    let mut waits = false;
    while follow.position().seq < follow.head() {
        let Some(items) = follow.next().await? else { break };
        for item in items {
            let Item::Event(record) = item else { continue };
            let data = match &record.event {
                Event::MessageAdded { options, .. } => options.front_end_data(FRONT_END),
                Event::CallCompleted { outcome, .. } => outcome.front_end_data.get(FRONT_END),
                _ => None,
            };
            if let Some(data) = data {
                waits = data[BACKGROUND] != true;
            }
        }
    }
    Ok(waits)
}
