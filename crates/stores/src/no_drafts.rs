//! No drafts: text is shown only once it is in the journal.

use quintet_kernel::follow::Delta;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Drafts, StorageError};

/// Drafts for stores that several nodes share. A draft is a file on one machine, but text that a
/// client saw must be available to the node that takes over the session. So every delta is refused,
/// and text is shown once the journal has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDrafts;

impl Drafts for NoDrafts {
    fn push(&self, _: &SessionId, _: &Delta) -> Result<(), StorageError> {
        Err(StorageError::Unavailable("text is kept in the journal alone".into()))
    }

    fn load(&self, _: &SessionId) -> Result<Vec<Delta>, StorageError> {
        Ok(Vec::new())
    }

    fn clear(&self, _: &SessionId) {}
}
