//! Keeps what a tool gives back beside its words: its files, and what it made of the workspace's.

use quintet_kernel::change::{FileChange, Version};
use quintet_kernel::message::{Artifact, Part};
use quintet_kernel::port::{Blobs, Changed, Content, File, Output, StorageError};
use quintet_kernel::tool::Outcome;

/// Keeps it; what cannot be kept is said in the outcome.
pub(super) async fn keep(blobs: &dyn Blobs, output: Output) -> Outcome {
    let Output { mut outcome, files, changes } = output;
    for File { name, mime, content } in files {
        let size = content.len() as u64;
        match blobs.put(content).await {
            Ok(blob) => outcome.artifacts.push(Artifact { name, mime, blob, size }),
            Err(error) => outcome.parts.push(lost(&name, &error)),
        }
    }
    for change in changes {
        outcome.changes.push(recorded(blobs, change).await);
    }
    outcome
}

async fn recorded(blobs: &dyn Blobs, change: Changed) -> FileChange {
    let before = version(blobs, change.before).await;
    let after = version(blobs, change.after).await;
    FileChange { path: change.path, before, after }
}

/// A change that cannot be kept is known all the same; it just cannot be undone.
async fn version(blobs: &dyn Blobs, content: Option<Content>) -> Option<Version> {
    let Content { bytes, size, mode, shape } = content?;
    let kept = match bytes {
        Some(bytes) => blobs.put(bytes).await.map(Some),
        None => Ok(None),
    };
    if let Err(error) = &kept {
        tracing::warn!(%error, "a change of a file cannot be undone");
    }
    Some(Version { blob: kept.ok().flatten(), size, mode, shape })
}

fn lost(name: &str, error: &StorageError) -> Part {
    Part::Text(format!("\n{name} could not be kept: {error}"))
}
