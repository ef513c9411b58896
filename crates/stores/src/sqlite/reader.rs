//! Connections for reading, a few of them, opened when they are first needed.
//!
//! A query waits in a line that threads of their own work off. It never waits for its caller: one who
//! holds several queries at once and looks after only one of them must not keep the others, nor
//! anybody else, from being answered.

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
use super::trouble;
use crate::lock;

/// Pages that one reader keeps, in KiB. The system keeps the file's pages anyway, for all readers once.
const READER_CACHE_KIB: i64 = 256;

/// Reads that run at once.
const CONNECTIONS: usize = 4;

/// The readers of a database.
#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    line: Mutex<Line>,
    /// Signalled when a reader found nothing more to read.
    rests: Condvar,
}

/// A query, to be answered with the readers' connections.
type Query = Box<dyn FnOnce(&Readers) + Send>;

/// What waits to be read, and how many read.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Query>,
    reading: usize,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Line({} wait, {} read)", self.waiting.len(), self.reading)
    }
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            idle: Mutex::default(),
            line: Mutex::default(),
            rests: Condvar::new(),
        }
    }

    /// The database.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a query where it may block. It must end its cursors before it returns, so no reader
    /// ever keeps the log from being tidied for longer than one page takes.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        query: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |readers| {
            // Whoever asked may have left.
            if !reply.is_closed() {
                let _ = reply.send(readers.with_connection(query));
            }
        });
        if self.line_up(query) {
            let mut shift = Shift { readers: self, over: false };
            spawn_blocking(move || while shift.one() {});
        }
        answer.await.unwrap_or_else(|error| Err(unavailable(error)))
    }

    /// Puts a query in the line; whether somebody more should work it off.
    fn line_up(&self, query: Query) -> bool {
        let mut line = lock(&self.line);
        line.waiting.push_back(query);
        let more = line.reading < CONNECTIONS;
        line.reading += usize::from(more);
        more
    }

    /// Waits until nobody reads, and closes the connections.
    pub(super) fn close(&self) {
        let mut line = lock(&self.line);
        while line.reading > 0 {
            line = self.rests.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        lock(&self.idle).clear();
    }

    fn with_connection<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let idle = lock(&self.idle).pop();
        let db = idle.map_or_else(|| self.connect(), Ok).map_err(trouble)?;
        // All that a query looks at is of one moment; a session may be erased meanwhile.
        let moment = db.unchecked_transaction().map_err(trouble)?;
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
struct Shift {
    readers: Arc<Readers>,
    over: bool,
}

impl Shift {
    /// Answers one query; whether there was one. Whoever finds none is counted no more.
    fn one(&mut self) -> bool {
        let mut line = lock(&self.readers.line);
        let Some(query) = line.waiting.pop_front() else {
            line.reading -= 1;
            self.over = true;
            self.readers.rests.notify_all();
            return false;
        };
        drop(line);
        // Whoever asked is told: the answer is never given. The next one is answered all the same.
        if catch_unwind(AssertUnwindSafe(|| query(&self.readers))).is_err() {
            tracing::error!("a query panicked");
        }
        true
    }
}

/// A runtime that ends may drop it before it began.
impl Drop for Shift {
    fn drop(&mut self) {
        if !self.over {
            lock(&self.readers.line).reading -= 1;
            self.readers.rests.notify_all();
        }
    }
}

fn unavailable(error: impl ToString) -> StorageError {
    StorageError::Unavailable(error.to_string())
}
