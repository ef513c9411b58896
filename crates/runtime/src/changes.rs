//! What turns did to files, with content.

use quintet_kernel::change::{FileChange, Version, gaps, net};
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{
    Body, BoxFuture, Changed, Changes, Changeset, Content, Error, Sessions, StorageError,
};
use quintet_kernel::{Refusal, SessionId, TurnId};

use crate::parts::Parts;
use crate::runtime::Runtime;

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
    let mut read = Vec::with_capacity(changes.len());
    for FileChange { path, before, after } in changes {
        let (before, after) =
            (content(parts, before.as_ref()).await?, content(parts, after.as_ref()).await?);
        read.push(Changed { path: path.clone(), before, after });
    }
    Ok(read)
}

async fn content(
    parts: &Parts,
    version: Option<&Version>,
) -> Result<Option<Content>, StorageError> {
    let Some(Version { blob, size, mode, shape }) = version else { return Ok(None) };
    let body = match blob {
        Some(blob) => Some(body(parts, blob).await?),
        None => None,
    };
    Ok(Some(Content { body, size: *size, mode: *mode, shape: *shape }))
}

/// What has not been kept, or had to make room by now, can still be told from anything else.
async fn body(parts: &Parts, blob: &BlobId) -> Result<Body, StorageError> {
    for blobs in [&parts.undo, &parts.blobs] {
        match blobs.body(blob).await {
            Err(StorageError::Missing(_)) => {}
            found => return found,
        }
    }
    Ok(Body::Hash(blob.clone()))
}
