//! A session's events, some of them shared with others.

use std::collections::HashSet;
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::port::{Batch, Page, StorageError};

use super::{History, Kept, Shared};
use crate::lock;
use crate::names::names_in;

impl History {
    /// The beginning of a history, up to and including an event; nothing if it has no such event.
    pub(super) fn fork(parent: &Arc<Self>, at: Seq) -> Option<Self> {
        if at == 0 || at > parent.head() {
            return None;
        }
        // Straight to whoever has the event: a fork of a fork is read no slower.
        let mut with = Arc::clone(parent);
        while let Some(shared) = with.shared.clone().filter(|shared| at <= shared.upto) {
            with = shared.with;
        }
        Some(Self { shared: Some(Shared { with, upto: at }), own: Default::default() })
    }

    /// The number of its last event.
    pub(super) fn head(&self) -> Seq {
        self.base() + lock(&self.own).len() as Seq
    }

    /// Adds to it.
    pub(super) fn append(&self, batch: &Batch) {
        let bodies = batch.records.iter().map(|record| codec::encode(&record.event));
        lock(&self.own).extend(bodies.map(|body| Kept { at: batch.at, body }));
    }

    /// What comes after a number.
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

    /// The names of all blobs that it refers to, also in what it shares.
    pub(super) fn names(&self) -> HashSet<String> {
        let shared = self.shared.iter().flat_map(|shared| shared.with.names_upto(shared.upto));
        shared.chain(self.own_names(usize::MAX)).collect()
    }

    fn names_upto(&self, upto: Seq) -> HashSet<String> {
        let own = usize::try_from(upto.saturating_sub(self.base())).unwrap_or(usize::MAX);
        let shared = self.shared.iter();
        let shared = shared.flat_map(|shared| shared.with.names_upto(shared.upto.min(upto)));
        shared.chain(self.own_names(own)).collect()
    }

    fn own_names(&self, most: usize) -> HashSet<String> {
        let own = lock(&self.own);
        own.iter().take(most).flat_map(|kept| names_in(&kept.body)).map(str::to_owned).collect()
    }

    fn base(&self) -> Seq {
        self.shared.as_ref().map_or(0, |shared| shared.upto)
    }

    fn event(&self, seq: Seq) -> Option<Kept> {
        match &self.shared {
            Some(shared) if seq <= shared.upto => shared.with.event(seq),
            Some(_) | None => {
                let index = usize::try_from(seq - self.base() - 1).ok()?;
                lock(&self.own).get(index).cloned()
            }
        }
    }
}

impl Kept {
    fn record(&self, seq: Seq) -> Result<Record, StorageError> {
        let event = codec::decode(codec::VERSION, &self.body)
            .map_err(|error| StorageError::Damaged(format!("event {seq}: {error}")))?;
        Ok(Record { seq, at: self.at, event })
    }
}
