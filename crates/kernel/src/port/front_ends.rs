//! What is kept for front ends besides sessions: who they are, what they like, what they handed in.

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
    /// The SHA-256 of its token, in hex; the token itself is kept nowhere.
    pub token: String,
    /// When it registered.
    pub created: Time,
    /// When it last said who it is, to within a minute or so.
    pub seen: Time,
    /// What it says it runs on.
    pub system: Option<String>,
}

/// The front ends that registered.
pub trait Installs: Send + Sync {
    /// Adds one; durable when it resolves.
    fn register(&self, install: Install) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The one with this hash of a token.
    fn find_by_token(&self, token: &str) -> BoxFuture<'_, Result<Option<Install>, StorageError>>;
    /// Notes that one was seen; durable when it resolves.
    fn touch(&self, id: &str, at: Time) -> BoxFuture<'_, Result<(), StorageError>>;
    /// All of them, oldest first.
    fn all(&self) -> BoxFuture<'_, Result<Vec<Install>, StorageError>>;
    /// Takes one away and says whether it was there; durable when it resolves.
    fn revoke(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// The space in which stores note every session that is erased, with the erasing, under its name. Whoever
/// keeps copies of sessions takes the note away once the copy is gone.
pub const ERASED_SPACE: &str = "erased";

/// Front ends' own settings. What they mean is theirs.
pub trait Preferences: Send + Sync {
    /// What is kept under a name in somebody's space.
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>>;
    /// The names in somebody's space.
    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>>;
    /// Keeps it instead of what was there, in the order of the calls; durable when it resolves. Null
    /// takes away what was there.
    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Keeps it if what is there is as expected, and says whether it was; `None` stands for nothing. Durable
    /// when it resolves.
    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// A file that a front end handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// The artifact's id, which is also the name of its content.
    pub id: String,
    /// The owner; none where clients need not identify themselves.
    pub owner: Option<String>,
    /// What it was found to be.
    pub mime: String,
    /// How many bytes it has.
    pub size: u64,
    /// The SHA-256 of the content, in hex.
    pub sha256: String,
    /// When it came.
    pub created: Time,
}

/// The list of files that front ends handed in.
pub trait Artifacts: Send + Sync {
    /// Adds one; durable when it resolves.
    fn add(&self, artifact: Artifact) -> BoxFuture<'_, Result<(), StorageError>>;
    /// One of them.
    fn artifact(&self, id: &str) -> BoxFuture<'_, Result<Option<Artifact>, StorageError>>;
    /// Notes that a session refers to one, for as long as there is the session or a fork of it. Says
    /// whether there is such an artifact; durable when it resolves.
    fn claim(&self, id: &str, session: &SessionId) -> BoxFuture<'_, Result<bool, StorageError>>;
    /// The artifacts older than a time that no session refers to, oldest first.
    fn unclaimed(&self, before: Time) -> BoxFuture<'_, Result<Vec<Artifact>, StorageError>>;
    /// Takes one away, unless a session refers to it by now; says whether it did. Durable when it
    /// resolves.
    fn discard(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>>;
}

/// Content that is too much to hold at once, by name.
pub trait Uploads: Send + Sync {
    /// Begins one that has no name yet.
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn UploadWriter>, StorageError>>;
    /// At most so many bytes of one, from some byte on.
    fn part(
        &self,
        name: &str,
        from: u64,
        length: usize,
    ) -> BoxFuture<'_, Result<Vec<u8>, StorageError>>;
    /// Takes one away, if it is there.
    fn remove(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>>;
    /// The names of all of them.
    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>>;
}

/// Content that is being taken in. Dropped before it is kept, it leaves nothing behind.
pub trait UploadWriter: Send {
    /// Adds to it.
    fn write(&mut self, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Gives it its name; whole and durable when it resolves.
    fn commit(self: Box<Self>, name: &str) -> BoxFuture<'static, Result<(), StorageError>>;
}
