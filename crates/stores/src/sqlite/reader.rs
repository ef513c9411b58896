//! A few read connections, opened on demand.
//!
//! Queries wait in a queue that blocking threads work off. A query never depends on its caller
//! being polled: a caller that holds several queries and polls only one of them must not block
//! the others.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use quintet_kernel::port::StorageError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::open::BUSY_TIMEOUT;
use super::storage_error;
use crate::lock;

/// Page cache of a reader in KiB. The operating system caches the file's pages for all readers.
const READER_CACHE_KIB: i64 = 256;

/// Maximum number of concurrent reads.
const READERS_LIMIT: usize = 4;

/// The read connections of a database.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    queue: Mutex<QueryQueue>,
    /// Signalled when a reader found the queue empty.
    drained: Condvar,
}

/// A queued query.
type Query = Box<dyn FnOnce(&Readers) + Send>;

/// Queued queries and the number of active readers.
#[derive(Default)]
struct QueryQueue {
    waiting: VecDeque<Query>,
    reading: usize,
}

impl fmt::Debug for QueryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({} wait, {} read)", self.waiting.len(), self.reading)
    }
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            idle: Mutex::default(),
            queue: Mutex::default(),
            drained: Condvar::new(),
        }
    }

    /// The database file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a query on a blocking thread. The query must close its cursors before it
    /// returns, so that no reader delays a checkpoint for longer than a page takes. Fails
    /// if the database cannot be read.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |readers| {
            // The caller may be gone.
            if !reply.is_closed() {
                let _ = reply.send(readers.with_connection(query));
            }
        });
        if self.enqueue(query) {
            let mut worker = QueueWorker { readers: self, over: false };
            spawn_blocking(move || while worker.run_one() {});
        }
        answer.await.unwrap_or_else(|error| Err(unavailable(error)))
    }

    /// Queues a query; true if another reader should be started.
    fn enqueue(&self, query: Query) -> bool {
        let mut queue = lock(&self.queue);
        queue.waiting.push_back(query);
        let more = queue.reading < READERS_LIMIT;
        queue.reading += usize::from(more);
        more
    }

    /// Waits until all reads have ended and closes the connections.
    pub(super) fn close(&self) {
        let mut queue = lock(&self.queue);
        while queue.reading > 0 {
            queue = self.drained.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        lock(&self.idle).clear();
    }

    fn with_connection<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let idle = lock(&self.idle).pop();
        let db = idle.map_or_else(|| self.connect(), Ok).map_err(storage_error)?;
        // A query sees one consistent state, even if a session is deleted meanwhile.
        let moment = db.unchecked_transaction().map_err(storage_error)?;
        let answer = query(&moment)?;
        drop(moment);
        lock(&self.idle).push(db);
        Ok(answer)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&self.path, flags)?;
        db.busy_timeout(BUSY_TIMEOUT)?;
        db.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        Ok(db)
    }
}

/// A thread that works off the queue until it is empty.
struct QueueWorker {
    readers: Arc<Readers>,
    over: bool,
}

impl QueueWorker {
    /// Runs one query; false if the queue was empty, and the worker is no longer counted
    /// then.
    fn run_one(&mut self) -> bool {
        let mut queue = lock(&self.readers.queue);
        let Some(query) = queue.waiting.pop_front() else {
            queue.reading -= 1;
            self.over = true;
            self.readers.drained.notify_all();
            return false;
        };
        drop(queue);
        // The caller sees the dropped reply as an error. The next query still runs.
        if catch_unwind(AssertUnwindSafe(|| query(&self.readers))).is_err() {
            tracing::error!("a query panicked");
        }
        true
    }
}

/// A runtime that shuts down may drop the worker before it started.
impl Drop for QueueWorker {
    fn drop(&mut self) {
        if !self.over {
            lock(&self.readers.queue).reading -= 1;
            self.readers.drained.notify_all();
        }
    }
}

fn unavailable(error: impl ToString) -> StorageError {
    StorageError::Unavailable(error.to_string())
}
