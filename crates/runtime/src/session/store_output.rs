//! Stores what a tool returns besides its text: files and file changes.

use quintet_kernel::change::{FileChange, FileVersion};
use quintet_kernel::message::{CallArtifact, Part};
use quintet_kernel::port::{Blobs, ChangedFile, FileContent, OutputFile, StorageError, ToolOutput};
use quintet_kernel::tool::Outcome;

use crate::changes::split_changes;
use crate::deps::RuntimeDeps;

/// Stores the files and changes of a call; failures are noted in the outcome.
pub(super) async fn store_output(deps: &RuntimeDeps, output: ToolOutput) -> Outcome {
    let ToolOutput { mut outcome, files, changes } = output;
    for OutputFile { name, mime, content } in files {
        let size = content.len() as u64;
        match deps.blobs.put(content).await {
            Ok(blob) => outcome.artifacts.push(CallArtifact { name, mime, blob, size }),
            Err(error) => outcome.parts.push(not_stored(&name, &error)),
        }
    }
    let changes = store_changes(&*deps.undo, changes).await;
    (outcome.changes, outcome.more_changes) = split_changes(&*deps.undo, changes).await;
    outcome
}

/// Stores the contents of changed files in one operation: one command may change thousands. A
/// change whose content cannot be stored is still recorded, but cannot be reverted.
pub(crate) async fn store_changes(
    blobs: &dyn Blobs,
    mut changes: Vec<ChangedFile>,
) -> Vec<FileChange> {
    if changes.is_empty() {
        return Vec::new();
    }
    let sides = changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten();
    let contents: Vec<_> = sides.map(|side| side.body.take()).collect();
    let known: Vec<_> = contents.iter().map(Option::is_some).collect();
    let kept = blobs.put_all(contents.into_iter().flatten().collect()).await;
    let kept = kept.unwrap_or_else(|error| {
        tracing::warn!(%error, "could not store file contents; the changes cannot be reverted");
        Vec::new()
    });
    let mut kept = kept.into_iter();
    let mut next = known.into_iter().map(|is_known| is_known.then(|| kept.next()).flatten());
    let mut version = |side: Option<FileContent>| {
        let FileContent { size, mode, shape, .. } = side?;
        Some(FileVersion { blob: next.next().flatten(), size, mode, shape })
    };
    let one = |ChangedFile { path, before, after }| {
        let (before, after) = (version(before), version(after));
        FileChange { path, before, after }
    };
    changes.into_iter().map(one).collect()
}

fn not_stored(name: &str, error: &StorageError) -> Part {
    Part::Text(format!("\n{name} could not be kept: {error}"))
}
