//! Files as editors have them.

use std::path::Path;

use super::BoxFuture;
use crate::id::SessionId;

/// The editors that sessions are open in, as far as they share their files.
pub trait Editors: Send + Sync {
    /// The text of a file with what is not saved yet; nothing if no editor shares it.
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
