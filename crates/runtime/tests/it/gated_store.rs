//! A journal that delays or fails appends and reads on request.

use std::future;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use quintet_kernel::SessionId;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::port::{Batch, BoxFuture, Journal, Lease, Page, StorageError};
use quintet_kernel::session_summary::Fork;
use quintet_stores::memory::MemoryStore;
use tokio::sync::watch;

/// What happens to appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Appends go through.
    Open,
    /// Appends wait.
    Shut,
    /// Appends are stored at once, and can be read, but are not acknowledged yet.
    Late,
    /// Appends fail, and nothing is stored.
    Broken,
    /// Appends are stored, but the answer is that the outcome is unknown.
    Unsure,
}

/// A journal with a gate.
#[derive(Debug)]
pub(crate) struct GatedJournal {
    store: MemoryStore,
    gate: watch::Sender<Gate>,
    /// Appends that fail, whatever the gate.
    failures: AtomicUsize,
    appends: watch::Sender<usize>,
    /// Later appends wait forever.
    last: AtomicUsize,
    /// Reads that fail.
    read_failures: AtomicUsize,
    reads: watch::Sender<Reads>,
    /// A session that cannot be read.
    damaged: OnceLock<SessionId>,
}

/// What happens to reads.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    held: bool,
    under_way: usize,
}

impl GatedJournal {
    pub(crate) fn new(store: MemoryStore) -> Self {
        let (gate, appends) = (watch::Sender::new(Gate::Open), watch::Sender::new(0));
        Self {
            store,
            gate,
            failures: AtomicUsize::new(0),
            appends,
            last: AtomicUsize::new(usize::MAX),
            read_failures: AtomicUsize::new(0),
            reads: watch::Sender::default(),
            damaged: OnceLock::new(),
        }
    }

    pub(crate) fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
    }

    /// Makes the next append fail without storing anything.
    pub(crate) fn fail_next(&self) {
        self.failures.fetch_add(1, Ordering::SeqCst);
    }

    /// Makes the next `count` reads fail.
    pub(crate) fn fail_reads(&self, count: usize) {
        self.read_failures.store(count, Ordering::SeqCst);
    }

    /// Makes a session unreadable.
    pub(crate) fn damage(&self, session: &SessionId) {
        self.damaged.set(session.clone()).unwrap();
    }

    /// Holds or releases reads.
    pub(crate) fn hold_reads(&self, held: bool) {
        self.reads.send_modify(|reads| reads.held = held);
    }

    /// Number of reads that are still to fail.
    pub(crate) fn read_failures(&self) -> usize {
        self.read_failures.load(Ordering::SeqCst)
    }

    /// Number of reads in progress.
    pub(crate) fn reading(&self) -> usize {
        self.reads.borrow().under_way
    }

    /// Appends after this many wait forever, as if the process had died.
    pub(crate) fn end_after(&self, appends: usize) {
        self.last.store(appends, Ordering::SeqCst);
    }

    /// Number of appends so far.
    pub(crate) fn appends(&self) -> usize {
        *self.appends.borrow()
    }

    /// Waits for this many appends.
    pub(crate) async fn appended(&self, count: usize) {
        let mut appends = self.appends.subscribe();
        appends.wait_for(|n| *n >= count).await.unwrap();
    }

    fn fails(&self) -> bool {
        take_one(&self.failures)
    }
}

fn take_one(failures: &AtomicUsize) -> bool {
    let one_less = |left: usize| left.checked_sub(1);
    failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
}

impl Journal for GatedJournal {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.appends.send_modify(|n| *n += 1);
        let broken = || Err(StorageError::Unavailable("the disk is full".into()));
        if self.appends() > self.last.load(Ordering::SeqCst) {
            return Box::pin(future::pending());
        }
        let gate = if self.fails() { Gate::Broken } else { *self.gate.borrow() };
        let mut opened = self.gate.subscribe();
        let (store, lease) = (self.store.clone(), lease.clone());
        match gate {
            Gate::Open => store.append(&lease, expected, batch),
            Gate::Broken => Box::pin(async move { broken() }),
            Gate::Unsure => {
                drop(store.append(&lease, expected, batch));
                Box::pin(async move { broken() })
            }
            Gate::Late => {
                let kept = store.append(&lease, expected, batch);
                Box::pin(async move {
                    let _ = opened.wait_for(|gate| *gate == Gate::Open).await;
                    kept.await
                })
            }
            Gate::Shut => Box::pin(async move {
                let _ = opened.wait_for(|gate| *gate == Gate::Open).await;
                store.append(&lease, expected, batch).await
            }),
        }
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        let session = session.clone();
        Box::pin(async move {
            if take_one(&self.read_failures) {
                return Err(StorageError::Unavailable("the disk does not answer".into()));
            }
            if self.damaged.get() == Some(&session) {
                return Err(StorageError::Damaged("event 1".into()));
            }
            self.reads.send_modify(|reads| reads.under_way += 1);
            let mut reads = self.reads.subscribe();
            let _ = reads.wait_for(|reads| !reads.held).await;
            self.reads.send_modify(|reads| reads.under_way -= 1);
            self.store.read(&session, after, page).await
        })
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        self.store.erase(lease)
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.store.fork(lease, from, batch)
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        self.store.head(session)
    }
}
