//! Connections for reading, a few of them, opened when they are first needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quintet_kernel::port::StorageError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::open::PATIENCE;
use super::trouble;
use crate::lock;

/// Reads that run at once.
const CONNECTIONS: usize = 4;

/// The readers of a database.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    slots: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let slots = Arc::new(Semaphore::new(CONNECTIONS));
        Self { path: path.into(), idle: Mutex::default(), slots }
    }

    /// Runs a query where it may block. It must end its cursors before it returns, so no reader
    /// ever keeps the log from being tidied for longer than one page takes.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(unavailable)?;
        let work = move || {
            // Held by the work and not by the future, which may be dropped while the work goes on.
            let _slot = slot;
            self.with_connection(query)
        };
        spawn_blocking(work).await.unwrap_or_else(|error| Err(unavailable(error)))
    }

    fn with_connection<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let idle = lock(&self.idle).pop();
        let db = idle.map_or_else(|| self.connect(), Ok).map_err(trouble)?;
        let answer = query(&db)?;
        lock(&self.idle).push(db);
        Ok(answer)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.path, flags)?;
        db.busy_timeout(PATIENCE)?;
        Ok(db)
    }
}

fn unavailable(error: impl ToString) -> StorageError {
    StorageError::Unavailable(error.to_string())
}
