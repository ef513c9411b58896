//! A session's events in memory, some of them shared with a parent.

use std::collections::HashSet;
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{Batch, Page, Snapshot, StorageError};

use super::{History, SharedPrefix, StoredEvent};
use crate::lock;

impl History {
    /// The history up to and including an event; `None` if there is no such event.
    pub(super) fn fork(parent: &Arc<Self>, at: Seq) -> Option<Self> {
        if at == 0 || at > parent.head() {
            return None;
        }
        // Refers directly to the owner of the event, so that a fork of a fork is read as fast.
        let mut with = Arc::clone(parent);
        while let Some(shared) = with.shared.clone().filter(|shared| at <= shared.upto) {
            with = shared.with;
        }
        Some(Self { shared: Some(SharedPrefix { with, upto: at }), ..Self::default() })
    }

    /// The number of the last event.
    pub(super) fn head(&self) -> Seq {
        self.base() + lock(&self.own).len() as Seq
    }

    /// Appends events.
    pub(super) fn append(&self, batch: &Batch) {
        let kept = |record: &Arc<Record>| StoredEvent {
            at: record.at,
            body: codec::encode(&record.event),
            blobs: record.event.blobs().into_iter().cloned().collect(),
        };
        lock(&self.own).extend(batch.records.iter().map(kept));
    }

    /// The events after a number.
    pub(super) fn read(&self, after: Seq, page: Page) -> Result<Vec<Record>, StorageError> {
        let mut records = Vec::new();
        let mut bytes = 0;
        for seq in after.saturating_add(1)..=self.head() {
            let Some(kept) = self.event(seq).filter(|_| records.len() < page.events) else { break };
            bytes += kept.body.len();
            if bytes > page.bytes && !records.is_empty() {
                break;
            }
            records.push(kept.record(seq)?);
        }
        Ok(records)
    }

    /// All referenced blobs, including those of shared events.
    pub(super) fn blobs(&self) -> HashSet<BlobId> {
        self.blobs_upto(Seq::MAX)
    }

    fn blobs_upto(&self, upto: Seq) -> HashSet<BlobId> {
        let own = usize::try_from(upto.saturating_sub(self.base())).unwrap_or(usize::MAX);
        let shared = self.shared.iter();
        let shared = shared.flat_map(|shared| shared.with.blobs_upto(shared.upto.min(upto)));
        let kept = lock(&self.own);
        shared.chain(kept.iter().take(own).flat_map(|kept| kept.blobs.iter().cloned())).collect()
    }

    /// Stores a snapshot, unless it includes more events than the history has.
    pub(super) fn keep_snapshot(&self, snapshot: Snapshot) {
        if snapshot.seq <= self.head() {
            *lock(&self.snapshot) = Some(snapshot);
        }
    }

    /// The latest snapshot up to a number, of this session or an ancestor.
    pub(super) fn snapshot(&self, upto: Seq) -> Option<Snapshot> {
        let own = lock(&self.snapshot).clone().filter(|found| found.seq <= upto);
        let shared = || {
            let shared = self.shared.as_ref()?;
            shared.with.snapshot(shared.upto.min(upto))
        };
        own.or_else(shared)
    }

    /// Deletes the snapshot; the events stay for forks.
    pub(super) fn drop_snapshot(&self) {
        *lock(&self.snapshot) = None;
    }

    fn base(&self) -> Seq {
        self.shared.as_ref().map_or(0, |shared| shared.upto)
    }

    fn event(&self, seq: Seq) -> Option<StoredEvent> {
        match &self.shared {
            Some(shared) if seq <= shared.upto => shared.with.event(seq),
            Some(_) | None => {
                let index = usize::try_from(seq - self.base() - 1).ok()?;
                lock(&self.own).get(index).cloned()
            }
        }
    }
}

impl StoredEvent {
    fn record(&self, seq: Seq) -> Result<Record, StorageError> {
        let event = codec::decode(codec::VERSION, &self.body)
            .map_err(|error| StorageError::Damaged(format!("event {seq}: {error}")))?;
        Ok(Record { seq, at: self.at, event })
    }
}
