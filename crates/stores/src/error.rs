//! Why a store could not be opened.

use std::path::{Path, PathBuf};

/// Why a store could not be opened. Existing files were not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another daemon uses the directory.
    #[error("{} is in use by another daemon; stop that one, or choose another data_dir", .0.display())]
    InUse(PathBuf),
    /// The file is not a database.
    #[error("{} is not a database; choose another data_dir", .0.display())]
    NotADatabase(PathBuf),
    /// The file is a database of another program.
    #[error("{} is the database of another program; choose another data_dir", .0.display())]
    Foreign(PathBuf),
    /// A newer version wrote the database.
    #[error("{} has format {found}, and this version reads up to {known}: use the newer version that wrote it, restore a backup, or choose another data_dir", path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// The format of the database.
        found: u32,
        /// The newest format that this version reads.
        known: u32,
    },
    /// The database cannot be read.
    #[error("{} is damaged: {reason}; restore a backup, or choose another data_dir (nothing was changed)", path.display())]
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
    /// The operating system reported an error.
    #[error("{} cannot be used: {source}", path.display())]
    Unusable {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// For `map_err`: an error of the operating system about `path`.
    pub(crate) fn unusable<E>(path: &Path) -> impl FnOnce(E) -> Self
    where
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        move |source| Self::Unusable { path: path.into(), source: source.into() }
    }
}
