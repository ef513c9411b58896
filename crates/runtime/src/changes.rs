//! File changes of turns with their contents, and reverting them.

use quintet_kernel::change::{
    FileChange, FileKind, FileVersion, LISTED_CHANGES_LIMIT, UnlistedChanges, consecutive_changes,
    merge_unrecorded, net_changes,
};
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{
    BlobBody, Blobs, ChangedFile, Changeset, Error, FileContent, RevertMode, Sessions, StorageError,
};
use quintet_kernel::session::Turn;
use quintet_kernel::{Refusal, SessionId, TurnId};

use crate::deps::RuntimeDeps;
use crate::runtime::Runtime;

/// Longer contents are left in their file, in bytes.
const INLINE_BYTES_LIMIT: u64 = 1024 * 1024;
const TOTAL_BYTES_LIMIT: u64 = 64 * 1024 * 1024;
/// Maximum number of files of a turn that are listed and shown in its diff.
const SHOWN_FILES_LIMIT: usize = 1000;

impl Runtime {
    pub(crate) async fn changes_of(
        &self,
        session: &SessionId,
        id: &TurnId,
    ) -> Result<Changeset, Error> {
        let state = self.view(session).await?;
        let turn = state.turn(id).ok_or_else(|| Refusal::UnknownTurn(id.clone()))?;
        let deps = self.deps();
        let (all, lost) = all_changes(deps, turn).await?;
        let mut files = net_changes(&all);
        let more = files.len().saturating_sub(SHOWN_FILES_LIMIT) as u64 + lost;
        files.truncate(SHOWN_FILES_LIMIT);
        let changes = with_content(deps, &files).await?;
        let diff = deps.workspaces.diff(&turn.workspace, changes).await;
        let (unrecorded, reverted) = (merge_unrecorded(&turn.unrecorded), turn.reverted);
        Ok(Changeset { files, more, unrecorded, diff, reverted })
    }

    /// Why the changes of a turn could not be reverted now.
    pub(crate) async fn conflicts_of(
        &self,
        session: &SessionId,
        id: &TurnId,
    ) -> Result<Option<String>, Error> {
        let state = self.view(session).await?;
        let turn = state.turn(id).ok_or_else(|| Refusal::UnknownTurn(id.clone()))?;
        if turn.changes.is_empty() && turn.more_changes.is_empty() {
            return Err(Refusal::NothingToRevert(id.clone()).into());
        }
        Ok(revert_turn(self.deps(), turn, RevertMode::DryRun).await.err())
    }
}

/// Reverts a turn's changes or, if they are reverted, reapplies them.
pub(crate) async fn revert_turn(
    deps: &RuntimeDeps,
    turn: &Turn,
    run: RevertMode,
) -> Result<(), String> {
    let (changes, lost) = all_changes(deps, turn).await.map_err(|error| error.to_string())?;
    if lost > 0 {
        return Err(format!("the list of {lost} further changes was deleted"));
    }
    let changes = with_content(deps, &consecutive_changes(&changes))
        .await
        .map_err(|error| error.to_string())?;
    let swap =
        |ChangedFile { path, before, after }| ChangedFile { path, before: after, after: before };
    let changes =
        if turn.reverted { changes.into_iter().rev().map(swap).collect() } else { changes };
    deps.workspaces.revert_changes(&turn.workspace, changes, run).await
}

/// All changes of a turn in order, and the number of those whose list was deleted.
async fn all_changes(
    deps: &RuntimeDeps,
    turn: &Turn,
) -> Result<(Vec<FileChange>, u64), StorageError> {
    let (mut all, mut lost, mut taken) = (Vec::new(), 0, 0);
    for (position, more) in &turn.more_changes {
        all.extend_from_slice(&turn.changes[taken..*position]);
        taken = *position;
        match read_unlisted(deps, more).await? {
            Some(changes) => all.extend(changes),
            None => lost += more.count,
        }
    }
    all.extend_from_slice(&turn.changes[taken..]);
    Ok((all, lost))
}

async fn read_unlisted(
    deps: &RuntimeDeps,
    more: &UnlistedChanges,
) -> Result<Option<Vec<FileChange>>, StorageError> {
    let Some(blob) = &more.blob else { return Ok(None) };
    match deps.undo.get(blob).await {
        Ok(list) => Ok(serde_json::from_slice(&list).ok()),
        Err(StorageError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Splits changes into those that an event lists and a blob with the rest.
pub(crate) async fn split_changes(
    undo: &dyn Blobs,
    mut changes: Vec<FileChange>,
) -> (Vec<FileChange>, Option<UnlistedChanges>) {
    if changes.len() <= LISTED_CHANGES_LIMIT {
        return (changes, None);
    }
    let rest = changes.split_off(LISTED_CHANGES_LIMIT);
    let list = serde_json::to_vec(&rest).unwrap_or_default();
    let kept = undo.put(list).await;
    if let Err(error) = &kept {
        tracing::warn!(%error, "could not store a list of file changes; they cannot be reverted");
    }
    (changes, Some(UnlistedChanges { count: rest.len() as u64, blob: kept.ok() }))
}

/// Adds the stored contents to changes.
pub(crate) async fn with_content(
    deps: &RuntimeDeps,
    changes: &[FileChange],
) -> Result<Vec<ChangedFile>, StorageError> {
    let (mut read, mut room) = (Vec::with_capacity(changes.len()), TOTAL_BYTES_LIMIT);
    for FileChange { path, before, after } in changes {
        let before = content(deps, before.as_ref(), &mut room).await?;
        let after = content(deps, after.as_ref(), &mut room).await?;
        read.push(ChangedFile { path: path.clone(), before, after });
    }
    Ok(read)
}

async fn content(
    deps: &RuntimeDeps,
    version: Option<&FileVersion>,
    room: &mut u64,
) -> Result<Option<FileContent>, StorageError> {
    let Some(FileVersion { blob, size, mode, shape }) = version else { return Ok(None) };
    // The target of a link is short, and needed to restore it.
    let most =
        if *shape == FileKind::Link { INLINE_BYTES_LIMIT } else { INLINE_BYTES_LIMIT.min(*room) };
    let body = match blob {
        Some(blob) => Some(body(deps, blob, most).await?),
        None => None,
    };
    if let Some(BlobBody::Bytes(bytes)) = &body {
        *room = room.saturating_sub(bytes.len() as u64);
    }
    Ok(Some(FileContent { body, size: *size, mode: *mode, shape: *shape }))
}

/// The content of a blob. Content that was not stored, or was deleted, is represented by its
/// hash.
async fn body(deps: &RuntimeDeps, blob: &BlobId, most: u64) -> Result<BlobBody, StorageError> {
    for blobs in [&deps.undo, &deps.blobs] {
        match blobs.body(blob, most).await {
            Err(StorageError::Missing(_)) => {}
            found => return found,
        }
    }
    Ok(BlobBody::Hash(blob.clone()))
}
