//! The single writer thread.
//!
//! A commit waits for the disk; changes that are queued meanwhile share the next commit, in the
//! order in which they were queued. A single change never waits for others, and many share one
//! sync.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::{io, iter, slice};

use quintet_kernel::port::{BoxFuture, StorageError};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::{oneshot, watch};

use super::health::WriteHealth;
use super::{append, log_space, storage_error};

/// Maximum number of changes in one commit, which bounds how long the first of them waits.
const GROUP_LIMIT: usize = 1024;

/// The writer thread; dropping this finishes queued changes.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Box<dyn Change>>>,
    thread: Option<JoinHandle<()>>,
    /// Closed when the thread ends, also by a panic.
    alive: watch::Receiver<()>,
}

/// The result of a change.
pub(super) type WriteResult<T> = Result<T, StorageError>;

/// A queued change.
trait Change: Send {
    /// Makes the change inside a transaction; true if it was accepted. If it fails, the
    /// transaction is rolled back and the change may be applied again.
    fn apply(&mut self, db: &Connection, epoch: u64) -> rusqlite::Result<bool>;
    /// Storage failed: the change may or may not be stored.
    fn fail(&mut self, error: StorageError);
    /// Sends the result to the caller.
    fn reply(self: Box<Self>);
}

/// A change made by a closure, valid for one epoch.
struct QueuedChange<T, F> {
    epoch: u64,
    make: F,
    answer: Option<WriteResult<T>>,
    reply: oneshot::Sender<WriteResult<T>>,
}

impl<T, F> Change for QueuedChange<T, F>
where
    T: Send,
    F: Fn(&Connection) -> rusqlite::Result<WriteResult<T>> + Send,
{
    fn apply(&mut self, db: &Connection, epoch: u64) -> rusqlite::Result<bool> {
        let answer = if self.epoch == epoch { (self.make)(db)? } else { Err(StorageError::Fenced) };
        Ok(self.answer.insert(answer).is_ok())
    }

    fn fail(&mut self, error: StorageError) {
        self.answer = Some(Err(error));
    }

    fn reply(self: Box<Self>) {
        if let Some(answer) = self.answer {
            // The caller may have left; the change stays stored.
            let _ = self.reply.send(answer);
        }
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(mut db: Connection, write_health: Arc<WriteHealth>) -> io::Result<Self> {
        let (queue, changes) = channel();
        let (running, alive) = watch::channel(());
        let work = move || {
            let _running = running;
            log_space::reserve(&mut db);
            run(db, &changes, &write_health);
        };
        let thread = thread::Builder::new().name("journal".into()).spawn(work)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), alive })
    }

    /// Queues a change immediately; the future only waits for the result. A refused change
    /// must not have written anything; a failed one is rolled back and may be applied
    /// again.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        epoch: u64,
        make: impl Fn(&Connection) -> rusqlite::Result<WriteResult<T>> + Send + 'static,
    ) -> BoxFuture<'static, WriteResult<T>> {
        let (reply, answer) = oneshot::channel();
        if let Some(queue) = &self.queue {
            // If the thread is gone, the reply is dropped and the future fails.
            let _ = queue.send(Box::new(QueuedChange { epoch, make, answer: None, reply }));
        }
        Box::pin(async { answer.await.unwrap_or_else(|_| Err(writer_gone())) })
    }

    /// Queues a change that is refused only if the epoch is outdated.
    pub(super) fn change<T: Send + 'static>(
        &self,
        epoch: u64,
        make: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, WriteResult<T>> {
        self.submit(epoch, move |db| make(db).map(Ok))
    }

    /// Resolves when the thread has ended, which happens early only if it panicked.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut alive = self.alive.clone();
        async move { while alive.changed().await.is_ok() {} }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.thread.take().map(JoinHandle::join);
        if let Some(Err(_)) = ended {
            tracing::error!("the journal's writer panicked");
        }
    }
}

fn run(mut db: Connection, queue: &Receiver<Box<dyn Change>>, write_health: &WriteHealth) {
    while let Ok(first) = queue.recv() {
        let others = queue.try_iter().take(GROUP_LIMIT - 1);
        let mut group: Vec<_> = iter::once(first).chain(others).collect();
        if let Some(health) = commit(&mut db, &mut group) {
            write_health.note(health);
        }
        group.into_iter().for_each(Change::reply);
    }
}

/// Commits a group of changes; returns what that shows about storage. If it fails, each change
/// is committed alone, so that one that cannot be written (too large for the remaining space,
/// for example) does not fail the others; except if the file is locked, because each would wait
/// for the lock again.
fn commit(db: &mut Connection, group: &mut [Box<dyn Change>]) -> Option<Result<(), StorageError>> {
    let error = match commit_together(db, group) {
        Ok(accepted) => return accepted.then_some(Ok(())),
        Err(error) => error,
    };
    if group.len() > 1 && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
        let each = group.iter_mut().filter_map(|one| commit(db, slice::from_mut(one)));
        return each.reduce(Result::and);
    }
    let unique = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
    let why = storage_error(error);
    group.iter_mut().for_each(|change| change.fail(why.clone()));
    // A uniqueness violation says nothing about storage.
    if unique {
        return None;
    }
    tracing::error!(error = %why, changes = group.len(), "could not write to the database");
    Some(Err(why))
}

/// Applies changes in one transaction; true if any was accepted.
fn commit_together(db: &mut Connection, group: &mut [Box<dyn Change>]) -> rusqlite::Result<bool> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let epoch = append::epoch(&transaction)?;
    let mut accepted = false;
    for change in group {
        accepted |= change.apply(&transaction, epoch)?;
    }
    transaction.commit()?;
    Ok(accepted)
}

fn writer_gone() -> StorageError {
    StorageError::Unavailable("the journal's writer is gone".into())
}

#[cfg(test)]
mod tests;
