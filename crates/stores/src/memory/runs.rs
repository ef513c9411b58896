//! Runs and their journals in memory.

use std::collections::HashMap;
use std::future::ready;

use quintet_kernel::codec;
use quintet_kernel::event::Seq;
use quintet_kernel::id::RunId;
use quintet_kernel::port::{
    BoxFuture, Page, RunEntry, RunFilter, RunJournal, StorageError, WorkerRuns,
};
use quintet_kernel::run::{
    RunProgress, RunRecord, RunState, RunStatus, decode_event, encode_event,
};
use quintet_kernel::time::Time;

use super::MemoryStore;
use crate::lock;

/// All runs, oldest first.
#[derive(Debug, Default)]
pub(super) struct RunTable {
    rows: Vec<RunRow>,
    places: HashMap<RunId, usize>,
}

#[derive(Debug)]
struct RunRow {
    entry: RunEntry,
    /// Events encoded as on disk, so that sizes are the same.
    events: Vec<(Time, Vec<u8>)>,
}

impl RunTable {
    fn row(&self, run: &RunId) -> Option<&RunRow> {
        self.places.get(run).and_then(|place| self.rows.get(*place))
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = &RunEntry> {
        self.rows.iter().map(|row| &row.entry)
    }

    fn begin(&mut self, run: RunState, record: &RunRecord, most_active: usize) -> bool {
        let active = RunFilter {
            workspace: Some(run.brief.workspace.clone()),
            active: true,
            ..RunFilter::default()
        };
        if self.entries().filter(|entry| active.matches(&entry.run)).count() >= most_active {
            return false;
        }
        self.places.insert(run.id.clone(), self.rows.len());
        let events = vec![(record.at, encode_event(&record.event))];
        self.rows.push(RunRow { entry: RunEntry { run, heartbeat: None }, events });
        true
    }

    fn append(
        &mut self,
        run: &RunId,
        record: &RunRecord,
        progress: RunProgress,
    ) -> Result<(), StorageError> {
        let place = self.places.get(run).copied();
        let missing = || StorageError::Missing(format!("run {run}"));
        let row = place.and_then(|place| self.rows.get_mut(place)).ok_or_else(missing)?;
        let head = row.events.len() as Seq;
        if head.checked_add(1) != Some(record.seq) {
            return Err(StorageError::Conflict(head));
        }
        row.events.push((record.at, encode_event(&record.event)));
        row.entry.heartbeat = row.entry.heartbeat.max(progress.heartbeat);
        row.entry.run.progress = progress;
        Ok(())
    }

    fn renew(&mut self, worker: &str, at: Time, all: bool) {
        for RunRow { entry, .. } in &mut self.rows {
            let progress = &entry.run.progress;
            let begun = all || progress.status != RunStatus::Queued;
            if progress.is_leased() && begun && progress.worker() == Some(worker) {
                entry.heartbeat = entry.heartbeat.max(Some(at));
            }
        }
    }

    fn events(&self, run: &RunId, after: Seq, page: Page) -> Result<Vec<RunRecord>, StorageError> {
        let Some(row) = self.row(run) else { return Ok(Vec::new()) };
        let skipped = usize::try_from(after).unwrap_or(usize::MAX);
        let numbered = row.events.iter().zip(1..).skip(skipped).take(page.events);
        let (mut records, mut bytes) = (Vec::new(), 0_usize);
        for ((at, body), seq) in numbered {
            bytes = bytes.saturating_add(body.len());
            if bytes > page.bytes && !records.is_empty() {
                break;
            }
            let event = decode_event(codec::VERSION, body)
                .map_err(|error| StorageError::Damaged(error.to_string()))?;
            records.push(RunRecord { seq, at: *at, event });
        }
        Ok(records)
    }
}

impl RunJournal for MemoryStore {
    fn begin(
        &self,
        run: RunState,
        record: RunRecord,
        most_active: usize,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let begun = self.own_runs(|runs| Ok(runs.begin(run, &record, most_active)));
        Box::pin(ready(begun))
    }

    fn append(
        &self,
        run: &RunId,
        record: RunRecord,
        progress: RunProgress,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(ready(self.own_runs(|runs| runs.append(run, &record, progress))))
    }

    fn renew(&self, worker: &str, at: Time, all: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let renewed = self.own_runs(|runs| {
            runs.renew(worker, at, all);
            Ok(())
        });
        Box::pin(ready(renewed))
    }

    fn run(&self, run: &RunId) -> BoxFuture<'_, Result<Option<RunEntry>, StorageError>> {
        let contents = lock(&self.contents);
        Box::pin(ready(Ok(contents.runs.row(run).map(|row| row.entry.clone()))))
    }

    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, StorageError>> {
        Box::pin(ready(lock(&self.contents).runs.events(run, after, page)))
    }

    fn waiting(
        &self,
        workspace: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let contents = lock(&self.contents);
        let waiting = contents.runs.entries().filter(|entry| {
            entry.run.progress.is_waiting() && entry.run.brief.workspace == workspace
        });
        Box::pin(ready(Ok(waiting.take(limit).map(|entry| entry.run.id.clone()).collect())))
    }

    fn of_worker(&self, worker: &str) -> BoxFuture<'_, Result<WorkerRuns, StorageError>> {
        let contents = lock(&self.contents);
        let bound = |entry: &&RunEntry| entry.run.progress.worker() == Some(worker);
        let leased = contents.runs.entries().filter(bound);
        let leased = leased.filter(|entry| entry.run.progress.is_leased());
        let commanded = contents.runs.entries().filter(bound);
        let commanded = commanded.filter(|entry| !entry.run.progress.controls.is_empty());
        Box::pin(ready(Ok(WorkerRuns {
            heartbeat: leased.filter_map(|entry| entry.heartbeat).min(),
            commanded: commanded.cloned().collect(),
        })))
    }

    fn active(&self, workspace: Option<&str>) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let contents = lock(&self.contents);
        let filter = RunFilter {
            workspace: workspace.map(String::from),
            active: true,
            ..RunFilter::default()
        };
        let active = contents.runs.entries().filter(|entry| filter.matches(&entry.run));
        Box::pin(ready(Ok(active.map(|entry| entry.run.id.clone()).collect())))
    }

    fn silent(
        &self,
        before: Time,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        let contents = lock(&self.contents);
        let leased = contents.runs.entries().filter(|entry| entry.run.progress.is_leased());
        let silent = leased.filter(|entry| entry.heartbeat.is_some_and(|at| at < before));
        let mut silent: Vec<RunEntry> = silent.cloned().collect();
        silent.sort_by_key(|entry| entry.heartbeat);
        silent.truncate(limit);
        Box::pin(ready(Ok(silent)))
    }

    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        let contents = lock(&self.contents);
        let wanted = contents.runs.entries().rev().filter(|entry| filter.matches(&entry.run));
        Box::pin(ready(Ok(wanted.take(limit).cloned().collect())))
    }
}

impl MemoryStore {
    /// Changes runs, if this store may still write.
    fn own_runs<T>(
        &self,
        change: impl FnOnce(&mut RunTable) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let mut contents = lock(&self.contents);
        if self.epoch != contents.epoch {
            return Err(StorageError::Fenced);
        }
        change(&mut contents.runs)
    }
}
