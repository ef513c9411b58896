//! Files as they are in editors, including unsaved changes.

use std::path::Path;

use super::BoxFuture;
use crate::id::SessionId;

/// The editors in which sessions are open, if they share their files.
pub trait Editors: Send + Sync {
    /// The text of a file with unsaved changes; `None` if no editor shares the file.
    fn read<'a>(&'a self, session: &'a SessionId, path: &'a Path) -> BoxFuture<'a, Option<String>>;
    /// Updates the editor's copy of a file. The file on disk is already written, so nothing is lost if the
    /// editor refuses.
    fn write<'a>(
        &'a self,
        session: &'a SessionId,
        path: &'a Path,
        text: String,
    ) -> BoxFuture<'a, ()>;
}
