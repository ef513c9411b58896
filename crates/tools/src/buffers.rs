//! Files as the user's editor has them: unsaved text is used instead of the file on disk.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BlobBody, ChangedFile, Editors, Invocation, ToolContext};

use crate::confined_fs::{self, FileData};

/// Where tools ask for what editors have.
#[derive(Clone, Default)]
pub(crate) struct Buffers {
    editors: Option<Arc<dyn Editors>>,
}

/// The files of one call that an editor has, by their paths without `.`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsaved(HashMap<PathBuf, Vec<u8>>);

impl Buffers {
    pub(crate) fn new(editors: Option<Arc<dyn Editors>>) -> Self {
        Self { editors }
    }

    /// The editor's content of these files. Only existing files beneath the workspace are requested, so that a call
    /// reaches nothing through the editor that it could not reach itself.
    pub(crate) async fn fetch(&self, call: &Invocation, paths: Vec<PathBuf>) -> Unsaved {
        let mut unsaved = Unsaved::default();
        let Some(editors) = &self.editors else { return unsaved };
        for path in paths {
            let (root, named) = (call.workspace.clone(), path.clone());
            let there =
                tokio::task::spawn_blocking(move || confined_fs::open(&root, &named).is_ok());
            if !there.await.unwrap_or_default() {
                continue;
            }
            let whole = call.workspace.join(&path);
            if let Some(text) = editors.read(&call.session, &whole).await {
                unsaved.0.insert(plain(&path), text.into_bytes());
            }
        }
        unsaved
    }

    /// The same for a call that runs: it is not waited for once the call is cancelled.
    pub(crate) async fn fetch_or_cancel(
        &self,
        call: &Invocation,
        context: &ToolContext,
        paths: Vec<PathBuf>,
    ) -> Unsaved {
        tokio::select! {
            unsaved = self.fetch(call, paths) => unsaved,
            () = context.cancel.cancelled() => Unsaved::default(),
        }
    }

    /// Sends the files that a call changed to an editor that has them open.
    pub(crate) async fn pass_on(
        &self,
        call: &Invocation,
        context: &ToolContext,
        changes: &[ChangedFile],
    ) {
        let Some(editors) = &self.editors else { return };
        for change in changes {
            let body = change.after.as_ref().and_then(|after| after.body.as_ref());
            let Some(BlobBody::Bytes(bytes)) = body else { continue };
            let Ok(text) = String::from_utf8(bytes.clone()) else { continue };
            let path = call.workspace.join(&change.path);
            tokio::select! {
                () = editors.write(&call.session, &path, text) => {}
                () = context.cancel.cancelled() => return,
            }
        }
    }
}

impl Unsaved {
    /// A file's text, if an editor has it.
    pub(crate) fn text(&self, path: &Path) -> Option<&[u8]> {
        self.0.get(&plain(path)).map(Vec::as_slice)
    }

    /// The content of a file in the editor, or on disk.
    pub(crate) fn read(
        &self,
        root: &Path,
        path: &Path,
    ) -> Result<Option<FileData>, confined_fs::PathError> {
        let found = confined_fs::read(root, path)?;
        Ok(found.map(|content| match self.text(path) {
            Some(text) => FileData { bytes: text.to_vec(), ..content },
            None => content,
        }))
    }
}

fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
