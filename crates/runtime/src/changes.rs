//! What turns did to files, with content, and what would become of an undo.

use quintet_kernel::change::{
    FileChange, LISTED_LIMIT, MoreChanges, Shape, Version, gaps, net, runs,
};
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{
    Blobs, Body, BoxFuture, Changed, Changes, Changeset, Content, Error, Sessions, StorageError,
    UndoRun,
};
use quintet_kernel::session::Turn;
use quintet_kernel::{Refusal, SessionId, TurnId};

use crate::parts::Parts;
use crate::runtime::Runtime;

/// What is longer is not held, in bytes, and how much is held in all.
const LONGEST: u64 = 1024 * 1024;
const HELD: u64 = 64 * 1024 * 1024;
/// The most files of a turn that are listed and shown in its diff.
const SHOWN_LIMIT: usize = 1000;

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
            let parts = self.parts();
            let (all, lost) = all_changes(parts, turn).await?;
            let mut files = net(&all);
            let more = files.len().saturating_sub(SHOWN_LIMIT) as u64 + lost;
            files.truncate(SHOWN_LIMIT);
            let changes = with_content(parts, &files).await?;
            let diff = parts.workspaces.diff(&turn.workspace, changes).await;
            let (unrecorded, reverted) = (gaps(&turn.unrecorded), turn.reverted);
            Ok(Changeset { files, more, unrecorded, diff, reverted })
        })
    }

    fn conflicts(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let (session, id) = (session.clone(), turn.clone());
        Box::pin(async move {
            let state = self.view(&session).await?;
            let turn = state.turn(&id).ok_or_else(|| Refusal::UnknownTurn(id.clone()))?;
            if turn.changes.is_empty() && turn.more_changes.is_empty() {
                return Err(Refusal::NothingToRevert(id).into());
            }
            Ok(undo(self.parts(), turn, UndoRun::Dry).await.err())
        })
    }

    fn contents(&self, changes: Vec<FileChange>) -> BoxFuture<'_, Result<Vec<Changed>, Error>> {
        Box::pin(async move { Ok(with_content(self.parts(), &changes).await?) })
    }
}

/// Undoes a turn's changes or, where they are undone, makes them again.
pub(crate) async fn undo(parts: &Parts, turn: &Turn, run: UndoRun) -> Result<(), String> {
    let (changes, lost) = all_changes(parts, turn).await.map_err(|error| error.to_string())?;
    if lost > 0 {
        return Err(format!("the list of {lost} further changes is not kept any more"));
    }
    let changes = with_content(parts, &runs(&changes)).await.map_err(|error| error.to_string())?;
    let swap = |Changed { path, before, after }| Changed { path, before: after, after: before };
    let changes =
        if turn.reverted { changes.into_iter().rev().map(swap).collect() } else { changes };
    parts.workspaces.put_back(&turn.workspace, changes, run).await
}

/// All changes of a turn in the order they happened, and how many more are not known any more.
async fn all_changes(parts: &Parts, turn: &Turn) -> Result<(Vec<FileChange>, u64), StorageError> {
    let (mut all, mut lost, mut taken) = (Vec::new(), 0, 0);
    for (position, more) in &turn.more_changes {
        all.extend_from_slice(&turn.changes[taken..*position]);
        taken = *position;
        match unlisted(parts, more).await? {
            Some(changes) => all.extend(changes),
            None => lost += more.count,
        }
    }
    all.extend_from_slice(&turn.changes[taken..]);
    Ok((all, lost))
}

async fn unlisted(
    parts: &Parts,
    more: &MoreChanges,
) -> Result<Option<Vec<FileChange>>, StorageError> {
    let Some(blob) = &more.blob else { return Ok(None) };
    match parts.undo.get(blob).await {
        Ok(list) => Ok(serde_json::from_slice(&list).ok()),
        Err(StorageError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Cuts a list of changes to what an event holds; the rest becomes a blob.
pub(crate) async fn listed(
    undo: &dyn Blobs,
    mut changes: Vec<FileChange>,
) -> (Vec<FileChange>, Option<MoreChanges>) {
    if changes.len() <= LISTED_LIMIT {
        return (changes, None);
    }
    let rest = changes.split_off(LISTED_LIMIT);
    let list = serde_json::to_vec(&rest).unwrap_or_default();
    let kept = undo.put(list).await;
    if let Err(error) = &kept {
        tracing::warn!(%error, "a list of changes could not be kept, so they cannot be undone");
    }
    (changes, Some(MoreChanges { count: rest.len() as u64, blob: kept.ok() }))
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
