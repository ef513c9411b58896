//! The editors that have sessions open and share unsaved files.
//!
//! A connection registers its sessions, and tools find it here. A request goes through the connection to the
//! editor. An editor that does not answer in time is ignored.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::SessionId;
use quintet_kernel::port::{BoxFuture, Editors};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Time that an editor may take for one file.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);

/// The sessions that editors have open.
#[derive(Clone, Default)]
pub struct EditorRegistry {
    open: Arc<Mutex<HashMap<SessionId, Registered>>>,
}

#[derive(Clone)]
struct Registered {
    /// The session's id in the editor; a subagent uses that of its parent.
    editor_session: SessionId,
    access: FileAccess,
    requests: mpsc::Sender<FileRequest>,
}

/// The file operations that an editor supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileAccess {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// A request to an editor.
#[derive(Debug)]
pub(crate) struct FileRequest {
    pub(crate) session: SessionId,
    pub(crate) path: PathBuf,
    pub(crate) action: FileAction,
    /// Receives the text that was read, or an empty text after a write; `None` if the operation failed.
    pub(crate) answer: oneshot::Sender<Option<String>>,
}

/// The operation on a file.
#[derive(Debug)]
pub(crate) enum FileAction {
    Read,
    Write(String),
}

impl fmt::Debug for EditorRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EditorRegistry")
    }
}

impl EditorRegistry {
    /// Sends requests for a session to this editor, instead of another one.
    pub(crate) fn register(
        &self,
        session: &SessionId,
        access: FileAccess,
        requests: &mpsc::Sender<FileRequest>,
    ) {
        if access.reads || access.writes {
            let (editor_session, requests) = (session.clone(), requests.clone());
            self.lock().insert(session.clone(), Registered { editor_session, access, requests });
        }
    }

    /// Sends requests for a subagent to the editor of its parent.
    pub(crate) fn register_subagent(&self, subagent: &SessionId, parent: &SessionId) {
        let mut open = self.lock();
        if let Some(registered) = open.get(parent).cloned() {
            open.insert(subagent.clone(), registered);
        }
    }

    /// Unregisters a session that the editor closed, or all of its sessions if none is given.
    pub(crate) fn close(&self, requests: &mpsc::Sender<FileRequest>, session: Option<&SessionId>) {
        self.lock().retain(|_, registered| {
            let closed = session.is_none_or(|session| registered.editor_session == *session);
            !(closed && registered.requests.same_channel(requests))
        });
    }

    async fn request(
        &self,
        session: &SessionId,
        path: &Path,
        action: FileAction,
    ) -> Option<String> {
        let registered = self.lock().get(session).cloned()?;
        let allowed = match action {
            FileAction::Read => registered.access.reads,
            FileAction::Write(_) => registered.access.writes,
        };
        if !allowed {
            return None;
        }
        let (answer, response) = oneshot::channel();
        let (session, path) = (registered.editor_session.clone(), path.to_owned());
        let request = FileRequest { session, path, action, answer };
        let answered = async {
            registered.requests.send(request).await.ok()?;
            response.await.ok()?
        };
        timeout(FILE_TIMEOUT, answered).await.ok()?
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Registered>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Editors for EditorRegistry {
    fn read<'a>(&'a self, session: &'a SessionId, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.request(session, path, FileAction::Read))
    }

    fn write<'a>(
        &'a self,
        session: &'a SessionId,
        path: &'a Path,
        text: String,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if self.request(session, path, FileAction::Write(text)).await.is_none() {
                tracing::debug!(%session, "the editor did not write the file");
            }
        })
    }
}
