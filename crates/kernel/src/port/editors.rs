//! Files as editors have them.

use std::path::Path;

use super::BoxFuture;
use crate::id::SessionId;

/// The editors that sessions are open in, as far as they share their files.
pub trait Editors: Send + Sync {
    /// The text of a file with what is not saved yet; nothing if no editor shares it.
    fn read<'a>(&'a self, session: &'a SessionId, path: &'a Path) -> BoxFuture<'a, Option<String>>;
    /// Puts a text into the file where the editor has it open, too. The file on disk has it already, so
    /// nothing is lost if the editor does not take it.
    fn write<'a>(
        &'a self,
        session: &'a SessionId,
        path: &'a Path,
        text: String,
    ) -> BoxFuture<'a, ()>;
}
