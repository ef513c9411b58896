//! What turns did to files, with content.

use quintet_kernel::change::{FileChange, Shape, Version, gaps, net};
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{
    Body, BoxFuture, Changed, Changes, Changeset, Content, Error, Sessions, StorageError,
};
use quintet_kernel::{Refusal, SessionId, TurnId};

use crate::parts::Parts;
use crate::runtime::Runtime;

/// What is longer is not held, in bytes, and how much is held in all.
const LONGEST: u64 = 1024 * 1024;
const HELD: u64 = 64 * 1024 * 1024;

impl Changes for Runtime {
    fn of_turn(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Changeset, Error>> {
        let (session, id) = (session.clone(), turn.clone());
        Box::pin(async move {
            let state = self.view(&session).await?;
            let turn = state.turn(&id).ok_or_else(|| Refusal::UnknownTurn(id.clone()))?;
            let (files, reverted) = (net(&turn.changes), turn.reverted);
            let parts = self.parts();
            let changes = with_content(parts, &files).await?;
            let diff = parts.workspaces.diff(changes).await;
            let unrecorded = gaps(&turn.unrecorded);
            Ok(Changeset { files, unrecorded, diff, reverted })
        })
    }
}

/// Reads what was kept of changes.
pub(crate) async fn with_content(
    parts: &Parts,
    changes: &[FileChange],
) -> Result<Vec<Changed>, StorageError> {
    let (mut read, mut room) = (Vec::with_capacity(changes.len()), HELD);
    for FileChange { path, before, after } in changes {
        let before = content(parts, before.as_ref(), &mut room).await?;
        let after = content(parts, after.as_ref(), &mut room).await?;
        read.push(Changed { path: path.clone(), before, after });
    }
    Ok(read)
}

async fn content(
    parts: &Parts,
    version: Option<&Version>,
    room: &mut u64,
) -> Result<Option<Content>, StorageError> {
    let Some(Version { blob, size, mode, shape }) = version else { return Ok(None) };
    // Where a link leads is short, and needed to make it.
    let most = if *shape == Shape::Link { LONGEST } else { LONGEST.min(*room) };
    let body = match blob {
        Some(blob) => Some(body(parts, blob, most).await?),
        None => None,
    };
    if let Some(Body::Bytes(bytes)) = &body {
        *room = room.saturating_sub(bytes.len() as u64);
    }
    Ok(Some(Content { body, size: *size, mode: *mode, shape: *shape }))
}

/// What has not been kept, or had to make room by now, can still be told from anything else.
async fn body(parts: &Parts, blob: &BlobId, most: u64) -> Result<Body, StorageError> {
    for blobs in [&parts.undo, &parts.blobs] {
        match blobs.body(blob, most).await {
            Err(StorageError::Missing(_)) => {}
            found => return found,
        }
    }
    Ok(Body::Hash(blob.clone()))
}
