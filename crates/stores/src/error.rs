//! Why a store cannot be opened.

use std::path::{Path, PathBuf};

/// Why a store cannot be opened. What was there is as it was.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another daemon works there.
    #[error("{} is in use by another daemon; stop that one, or choose another data_dir", .0.display())]
    InUse(PathBuf),
    /// The file holds something else.
    #[error("{} is not a database", .0.display())]
    NotADatabase(PathBuf),
    /// The file is a database, but not one of ours.
    #[error("{} is the database of another program", .0.display())]
    Foreign(PathBuf),
    /// A newer version wrote it.
    #[error("{} has format {found}, and this version reads up to {known}: start the newer version that wrote it, or choose another data_dir", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// The format that was found.
        found: u32,
        /// The newest format that is known here.
        known: u32,
    },
    /// The file is one of ours, but cannot be read.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The database server cannot be used.
    #[error("{server} cannot be used: {reason}")]
    Server {
        /// Where the server is, without a password.
        server: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The system says no.
    #[error("{} cannot be used: {source}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// What it says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// For `map_err`: the system says no about `path`.
    pub(crate) fn unusable<E>(path: &Path) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Unusable { path: path.into(), source: source.into() }
    }
}
