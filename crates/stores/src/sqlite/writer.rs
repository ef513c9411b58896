//! The one thread that writes.
//!
//! A commit waits for the disk; whatever is queued meanwhile goes into the next one together. So a
//! lone append never waits for company, and many share one sync.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::{io, iter, slice};

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, StorageError};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::oneshot;

use super::append::{self, Append, Verdict};
use super::erase::Erase;
use super::fork::Fork;
use super::naming::Naming;
use super::pulse::Pulse;
use super::trouble;

/// Appends in one commit, at most: bounds what the first of them waits for.
const LARGEST_GROUP: usize = 1024;

/// The writer; dropping it finishes what is queued.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Change(Change, oneshot::Sender<Verdict>),
    Name(Naming, oneshot::Sender<Named>),
    Errand(Errand),
}

/// Something else to be written, which brings its own way of telling what became of it.
type Errand = Box<dyn FnOnce(&mut Connection) + Send>;

/// Who has a name now.
type Named = Result<SessionId, StorageError>;

/// What is to be written.
#[derive(Debug)]
pub(super) enum Change {
    Append(Append),
    Erase(Erase),
    Fork(Fork),
}

impl From<Append> for Change {
    fn from(append: Append) -> Self {
        Self::Append(append)
    }
}

impl From<Erase> for Change {
    fn from(erase: Erase) -> Self {
        Self::Erase(erase)
    }
}

impl From<Fork> for Change {
    fn from(fork: Fork) -> Self {
        Self::Fork(fork)
    }
}

impl Change {
    fn apply(&self, db: &Connection, epoch: u64) -> rusqlite::Result<Verdict> {
        match self {
            Self::Append(append) => append.apply(db, epoch),
            Self::Erase(erase) => erase.apply(db, epoch),
            Self::Fork(fork) => fork.apply(db, epoch),
        }
    }
}

impl Writer {
    /// Starts the thread.
    pub(super) fn start(db: Connection, pulse: Arc<Pulse>) -> io::Result<Self> {
        let (queue, jobs) = channel();
        let work = move || run(db, &jobs, &pulse);
        let thread = thread::Builder::new().name("journal".into()).spawn(work)?;
        Ok(Self { queue: Some(queue), thread: Some(thread) })
    }

    /// Queues a change, at once; the future only waits for the verdict.
    pub(super) fn submit(&self, change: impl Into<Change>) -> BoxFuture<'static, Verdict> {
        let (reply, verdict) = oneshot::channel();
        self.send(Job::Change(change.into(), reply));
        Box::pin(async { verdict.await.unwrap_or_else(|_| Err(gone())) })
    }

    /// Queues a naming.
    pub(super) fn name(&self, naming: Naming) -> BoxFuture<'static, Named> {
        let (reply, named) = oneshot::channel();
        self.send(Job::Name(naming, reply));
        Box::pin(async { named.await.unwrap_or_else(|_| Err(gone())) })
    }

    /// Queues any other change, made in a transaction of its own by whoever has this epoch.
    pub(super) fn change<T: Send + 'static>(
        &self,
        epoch: u64,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StorageError>> {
        let (reply, done) = oneshot::channel();
        self.send(Job::Errand(Box::new(move |db| {
            let _ = reply.send(alone(db, epoch, work).unwrap_or_else(|error| Err(trouble(error))));
        })));
        Box::pin(async { done.await.unwrap_or_else(|_| Err(gone())) })
    }

    fn send(&self, job: Job) {
        if let Some(queue) = &self.queue {
            // If the thread is gone, so is the reply, and the verdict says it.
            let _ = queue.send(job);
        }
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

fn run(mut db: Connection, queue: &Receiver<Job>, pulse: &Pulse) {
    while let Ok(first) = queue.recv() {
        let others = queue.try_iter().take(LARGEST_GROUP - 1);
        let (mut group, mut replies) = (Vec::new(), Vec::new());
        let (mut names, mut errands) = (Vec::new(), Vec::new());
        for job in iter::once(first).chain(others) {
            match job {
                Job::Change(change, reply) => {
                    group.push(change);
                    replies.push(reply);
                }
                Job::Name(naming, reply) => names.push((naming, reply)),
                Job::Errand(errand) => errands.push(errand),
            }
        }
        // Whoever asked may have left; what is written stays written.
        let verdicts = commit(&mut db, &group);
        if let Some(beat) = beat(&verdicts) {
            pulse.note(beat);
        }
        for (verdict, reply) in verdicts.into_iter().zip(replies) {
            let _ = reply.send(verdict);
        }
        for (naming, reply) in names {
            let named = name(&mut db, &naming);
            let _ = reply.send(named.unwrap_or_else(|error| Err(trouble(error))));
        }
        for errand in errands {
            errand(&mut db);
        }
    }
}

/// What verdicts say of storage. That somebody else was faster says nothing: nothing was written.
fn beat(verdicts: &[Verdict]) -> Option<Result<(), StorageError>> {
    let trouble = verdicts.iter().find_map(|verdict| match verdict {
        Err(error @ (StorageError::Unavailable(_) | StorageError::Damaged(_))) => Some(error),
        Ok(_) | Err(_) => None,
    });
    match trouble {
        Some(trouble) => Some(Err(trouble.clone())),
        None => verdicts.iter().any(Result::is_ok).then_some(Ok(())),
    }
}

/// Makes a change with a commit of its own.
fn alone<T>(
    db: &mut Connection,
    epoch: u64,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<Result<T, StorageError>> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if append::epoch(&transaction)? != epoch {
        return Ok(Err(StorageError::Fenced));
    }
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(Ok(done))
}

/// Names are rare, so each has a commit of its own.
fn name(db: &mut Connection, naming: &Naming) -> rusqlite::Result<Named> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let epoch = append::epoch(&transaction)?;
    let named = naming.apply(&transaction, epoch)?;
    transaction.commit()?;
    Ok(named)
}

/// Writes a group with one commit. If storage fails, each is tried alone, so that one that cannot
/// be written (it may be too large for what is left of the disk) takes no other down with it;
/// but not if the file is locked, because each would wait for that again.
fn commit(db: &mut Connection, group: &[Change]) -> Vec<Verdict> {
    if group.is_empty() {
        return Vec::new();
    }
    match together(db, group) {
        Ok(verdicts) => verdicts,
        Err(error) if group.len() == 1 || is_locked(&error) => {
            tracing::error!(%error, appends = group.len(), "the journal could not be written");
            vec![Err(trouble(error)); group.len()]
        }
        Err(_) => group.iter().flat_map(|one| commit(db, slice::from_ref(one))).collect(),
    }
}

fn together(db: &mut Connection, group: &[Change]) -> rusqlite::Result<Vec<Verdict>> {
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let epoch = append::epoch(&transaction)?;
    let verdicts: rusqlite::Result<Vec<_>> =
        group.iter().map(|change| change.apply(&transaction, epoch)).collect();
    let verdicts = verdicts?;
    transaction.commit()?;
    Ok(verdicts)
}

fn is_locked(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

fn gone() -> StorageError {
    StorageError::Unavailable("the journal's writer is gone".into())
}

#[cfg(test)]
mod tests;
