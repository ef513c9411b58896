//! Data of front ends other than sessions: installs, preferences and uploaded files.

use serde_json::Value;

use super::{BoxFuture, StorageError};
use crate::id::SessionId;
use crate::time::Time;

/// A front end that registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Install {
    /// The install's id.
    pub id: String,
    /// The owner.
    pub user: String,
    /// The SHA-256 of its token, in hex; the token itself is not stored.
    pub token: String,
    /// When it registered.
    pub created: Time,
    /// When the install last authenticated, to within a minute.
    pub seen: Time,
    /// The operating system that the client reported.
    pub system: Option<String>,
}

/// The front ends that registered.
pub trait Installs: Send + Sync {
    /// Registers an install; durable when it resolves.
    fn register(&self, install: Install) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The install with this token hash.
    fn find_by_token(&self, token: &str) -> BoxFuture<'_, Result<Option<Install>, StorageError>>;
    /// Records when an install was last seen; durable when it resolves.
    fn touch(&self, id: &str, at: Time) -> BoxFuture<'_, Result<(), StorageError>>;
    /// All installs, oldest first.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Install>, StorageError>>;
    /// Deletes an install; true if it existed. Durable when it resolves.
    fn revoke(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// The space in which stores record deleted sessions by their ids, in the deleting transaction. A
/// projection removes the entry once its copy is deleted.
pub const ERASED_SPACE: &str = "erased";

/// Settings of front ends, which stores do not interpret.
pub trait Preferences: Send + Sync {
    /// The value of a name in a space.
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>>;
    /// The names in a space.
    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>>;
    /// Sets a value, in the order of the calls; null deletes it. Durable when it resolves.
    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Sets a value if the current one equals `expected` (`None` means no value); true if it was set. Durable
    /// when it resolves.
    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// A file that a front end uploaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The artifact's id, which is also the name of its content.
    pub id: String,
    /// The owner; `None` where clients need not identify themselves.
    pub owner: Option<String>,
    /// The media type, detected from the content.
    pub mime: String,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of the content, in hex.
    pub sha256: String,
    /// When the file was uploaded.
    pub created: Time,
}

/// The list of files that front ends uploaded.
pub trait Artifacts: Send + Sync {
    /// Adds an artifact; durable when it resolves.
    fn add(&self, artifact: Artifact) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The artifact of an id.
    fn artifact(&self, id: &str) -> BoxFuture<'_, Result<Option<Artifact>, StorageError>>;
    /// Records that a session refers to an artifact, for as long as the session or a fork of it exists;
    /// true if there is such an artifact. Durable when it resolves.
    fn claim(&self, id: &str, session: &SessionId) -> BoxFuture<'_, Result<bool, StorageError>>;
    /// The artifacts older than a time that no session refers to, oldest first.
    fn unclaimed(&self, before: Time) -> BoxFuture<'_, Result<Vec<Artifact>, StorageError>>;
    /// Deletes an artifact unless a session refers to it; true if it was deleted. Durable when it
    /// resolves.
    fn discard(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// Content that is too large for memory, by name.
pub trait Uploads: Send + Sync {
    /// Begins an upload, which gets its name when it is committed.
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn UploadWriter>, StorageError>>;
    /// At most `length` bytes of an upload, beginning at byte `from`.
    fn part(
        &self,
        name: &str,
        from: u64,
        length: usize,
    ) -> BoxFuture<'_, Result<Vec<u8>, StorageError>>;
    /// Deletes an upload, if it exists.
    fn remove(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The names of all uploads.
    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>>;
}

/// An upload in progress. If it is dropped before it is committed, nothing is stored.
pub trait UploadWriter: Send {
    /// Appends to the content.
    fn write(&mut self, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Names the upload, which is complete and durable when this resolves.
    fn commit(self: Box<Self>, name: &str) -> BoxFuture<'static, Result<(), StorageError>>;
}
