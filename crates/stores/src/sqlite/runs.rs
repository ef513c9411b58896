//! Runs: their journals, and a row for each from which the queue and the leases are read.
//!
//! `progress` in the row is computed from the journal and written with every event. If it cannot be
//! read, because another version wrote it, the journal is replayed.

use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::Seq;
use quintet_kernel::id::RunId;
use quintet_kernel::port::{
    BoxFuture, Page, RunEntry, RunFilter, RunJournal, StorageError, WorkerRuns,
};
use quintet_kernel::run::{
    RunEvent, RunProgress, RunRecord, RunState, RunStatus, decode_event, encode_event, replay,
};
use quintet_kernel::time::Time;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use super::append::place;
use super::writer::WriteResult;
use super::{SqliteStore, from_sql, storage_error, to_sql};

impl RunJournal for SqliteStore {
    fn begin(
        &self,
        run: RunState,
        record: RunRecord,
        most_active: usize,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let event = match EncodedRunEvent::new(&record, &run.progress) {
            Ok(event) => event,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        self.writer.change(self.epoch, move |db| begin(db, &run, &event, most_active))
    }

    fn append(
        &self,
        run: &RunId,
        record: RunRecord,
        progress: RunProgress,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let run = run.clone();
        let event = match EncodedRunEvent::new(&record, &progress) {
            Ok(event) => event,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        self.writer.submit(self.epoch, move |db| append(db, &run, &event, &progress))
    }

    fn renew(&self, worker: &str, at: Time, all: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let worker = worker.to_owned();
        self.writer.change(self.epoch, move |db| {
            db.prepare_cached(
                "UPDATE runs SET heartbeat = max(coalesce(heartbeat, ?2), ?2)
                 WHERE worker = ?1 AND leased = 1 AND (?3 OR status <> ?4)",
            )?
            .execute(params![worker, at.micros(), all, RunStatus::Queued.name()])?;
            Ok(())
        })
    }

    fn run(&self, run: &RunId) -> BoxFuture<'_, Result<Option<RunEntry>, StorageError>> {
        let run = run.clone();
        Box::pin(
            Arc::clone(&self.readers)
                .run(move |db| Ok(entries(db, "WHERE runs.id = ?1", &[&run.as_str()])?.pop())),
        )
    }

    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, StorageError>> {
        let run = run.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let Some(key) = key_of(db, &run).map_err(storage_error)? else { return Ok(Vec::new()) };
            read(db, key, after, page)
        }))
    }

    fn waiting(
        &self,
        workspace: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let workspace = workspace.to_owned();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let query = "SELECT id FROM runs WHERE workspace = ?1 AND waiting = 1
                 ORDER BY key LIMIT ?2";
            ids(db, query, &[&workspace, &to_sql(limit as u64)])
        }))
    }

    fn of_worker(&self, worker: &str) -> BoxFuture<'_, Result<WorkerRuns, StorageError>> {
        let worker = worker.to_owned();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let oldest = "SELECT min(heartbeat) FROM runs WHERE worker = ?1 AND leased = 1";
            let heartbeat: Option<i64> = db
                .prepare_cached(oldest)
                .and_then(|mut query| query.query_row([&worker], |row| row.get(0)))
                .map_err(storage_error)?;
            let clause = "WHERE runs.worker = ?1 AND runs.commands > 0 ORDER BY runs.key";
            let commanded = entries(db, clause, &[&worker])?;
            Ok(WorkerRuns { heartbeat: heartbeat.map(Time::from_micros), commanded })
        }))
    }

    fn active(&self, workspace: Option<&str>) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let workspace = workspace.map(String::from);
        Box::pin(Arc::clone(&self.readers).run(move |db| match &workspace {
            Some(workspace) => {
                let query = "SELECT id FROM runs WHERE workspace = ?1 AND active = 1 ORDER BY key";
                ids(db, query, &[workspace])
            }
            None => ids(db, "SELECT id FROM runs WHERE active = 1 ORDER BY key", &[]),
        }))
    }

    fn silent(
        &self,
        before: Time,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let clause = "WHERE runs.leased = 1 AND runs.heartbeat < ?1
                 ORDER BY runs.heartbeat LIMIT ?2";
            entries(db, clause, &[&before.micros(), &to_sql(limit as u64)])
        }))
    }

    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        Box::pin(Arc::clone(&self.readers).run(move |db| list(db, &filter, limit)))
    }
}

/// An event and the run after it, encoded on the caller's thread, because all runs share the writer's.
struct EncodedRunEvent {
    seq: Seq,
    at: i64,
    body: Vec<u8>,
    progress: String,
}

impl EncodedRunEvent {
    fn new(record: &RunRecord, progress: &RunProgress) -> Result<Self, StorageError> {
        let progress = serde_json::to_string(progress)
            .map_err(|error| StorageError::Unavailable(format!("run: {error}")))?;
        let body = encode_event(&record.event);
        Ok(Self { seq: record.seq, at: record.at.micros(), body, progress })
    }

    fn insert(&self, db: &Connection, key: i64) -> rusqlite::Result<()> {
        db.prepare_cached(
            "INSERT INTO run_events (place, at, format, body) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![place(key, self.seq), self.at, codec::VERSION, self.body])?;
        Ok(())
    }
}

fn begin(
    db: &Connection,
    run: &RunState,
    event: &EncodedRunEvent,
    most_active: usize,
) -> rusqlite::Result<bool> {
    let active: i64 = db
        .prepare_cached(
            "SELECT count(*) FROM (
                 SELECT 1 FROM runs WHERE workspace = ?1 AND active = 1 LIMIT ?2
             )",
        )?
        .query_row(params![run.brief.workspace, to_sql(most_active as u64)], |row| row.get(0))?;
    if from_sql(active) >= most_active as u64 {
        return Ok(false);
    }
    let key = db
        .prepare_cached(
            "INSERT INTO runs (id, workspace, status, commands, waiting, active, leased, updated, progress)
             VALUES (?1, ?2, ?3, 0, ?4, ?5, 0, ?6, ?7)",
        )?
        .insert(params![
            run.id.as_str(),
            run.brief.workspace,
            run.progress.status.name(),
            run.progress.is_waiting(),
            run.progress.status.is_active(),
            event.at,
            event.progress,
        ])?;
    event.insert(db, key)?;
    Ok(true)
}

fn append(
    db: &Connection,
    run: &RunId,
    event: &EncodedRunEvent,
    progress: &RunProgress,
) -> rusqlite::Result<WriteResult<()>> {
    let Some(key) = key_of(db, run)? else {
        return Ok(Err(StorageError::Missing(format!("run {run}"))));
    };
    let head = last(db, key)?;
    if head.checked_add(1) != Some(event.seq) {
        return Ok(Err(StorageError::Conflict(head)));
    }
    event.insert(db, key)?;
    db.prepare_cached(
        "UPDATE runs SET status = ?2, worker = ?3, commands = ?4, waiting = ?5, active = ?6,
             leased = ?7, heartbeat = max(coalesce(heartbeat, ?8), ?8), updated = ?9, progress = ?10
         WHERE key = ?1",
    )?
    .execute(params![
        key,
        progress.status.name(),
        progress.worker(),
        to_sql(progress.controls.len() as u64),
        progress.is_waiting(),
        progress.status.is_active(),
        progress.is_leased(),
        progress.heartbeat.map(Time::micros),
        event.at,
        event.progress,
    ])?;
    Ok(Ok(()))
}

fn key_of(db: &Connection, run: &RunId) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached("SELECT key FROM runs WHERE id = ?1")?
        .query_row([run.as_str()], |row| row.get(0))
        .optional()
}

fn last(db: &Connection, key: i64) -> rusqlite::Result<Seq> {
    db.prepare_cached(
        "SELECT place & 0xffffffff FROM run_events
         WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC LIMIT 1",
    )?
    .query_row([place(key, 0), place(key, Seq::MAX)], |row| row.get(0).map(from_sql))
}

fn ids(db: &Connection, query: &str, by: &[&dyn ToSql]) -> Result<Vec<RunId>, StorageError> {
    let mut query = db.prepare_cached(query).map_err(storage_error)?;
    let found = query.query_map(by, |row| row.get::<_, String>(0)).map_err(storage_error)?;
    let found = found.collect::<rusqlite::Result<Vec<_>>>().map_err(storage_error)?;
    // An invalid id can only be damage; failing would hide the other runs.
    Ok(found.iter().filter_map(|id| RunId::parse(id)).collect())
}

/// A row and the first event of its run.
struct StoredRun {
    key: i64,
    id: String,
    heartbeat: Option<i64>,
    progress: String,
    at: i64,
    format: u16,
    first: Vec<u8>,
}

fn entries(
    db: &Connection,
    clause: &str,
    by: &[&dyn ToSql],
) -> Result<Vec<RunEntry>, StorageError> {
    let query = format!(
        "SELECT runs.key, runs.id, runs.heartbeat, runs.progress, at, format, body
         FROM runs JOIN run_events ON place = (runs.key << 32 | 1) {clause}"
    );
    let kept: Vec<StoredRun> = db
        .prepare_cached(&query)
        .and_then(|mut query| query.query_map(by, stored_run)?.collect())
        .map_err(storage_error)?;
    kept.into_iter().map(|kept| kept.entry(db)).collect()
}

fn stored_run(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    Ok(StoredRun {
        key: row.get(0)?,
        id: row.get(1)?,
        heartbeat: row.get(2)?,
        progress: row.get(3)?,
        at: row.get(4)?,
        format: row.get(5)?,
        first: row.get(6)?,
    })
}

impl StoredRun {
    fn entry(self, db: &Connection) -> Result<RunEntry, StorageError> {
        let damaged = || StorageError::Damaged(format!("run {}", self.id));
        let id = RunId::parse(&self.id).ok_or_else(damaged)?;
        let event = decode(&id, self.format, &self.first)?;
        let first = RunRecord { seq: 1, at: Time::from_micros(self.at), event };
        let run = match serde_json::from_str(&self.progress) {
            Ok(progress) => RunState::begun(id, &first).map(|run| RunState { progress, ..run }),
            Err(_) => {
                let page = Page { events: usize::MAX, bytes: usize::MAX };
                replay(&id, &read(db, self.key, 0, page)?)
            }
        };
        let run = run.ok_or_else(damaged)?;
        Ok(RunEntry { run, heartbeat: self.heartbeat.map(Time::from_micros) })
    }
}

fn decode(id: &RunId, format: u16, body: &[u8]) -> Result<RunEvent, StorageError> {
    decode_event(format, body).map_err(|error| StorageError::Damaged(format!("run {id}: {error}")))
}

fn read(db: &Connection, key: i64, after: Seq, page: Page) -> Result<Vec<RunRecord>, StorageError> {
    let mut query = db
        .prepare_cached(
            "SELECT place & 0xffffffff, at, format, body FROM run_events
             WHERE place > ?1 AND place <= ?2 ORDER BY place LIMIT ?3",
        )
        .map_err(storage_error)?;
    let limit = to_sql(page.events as u64);
    let mut rows = query
        .query(params![place(key, after), place(key, Seq::MAX), limit])
        .map_err(storage_error)?;
    let (mut records, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = rows.next().map_err(storage_error)? {
        let (seq, record) = record(row).map_err(storage_error)?;
        let (at, format, body) = record;
        bytes = bytes.saturating_add(body.len());
        if bytes > page.bytes && !records.is_empty() {
            break;
        }
        let event = decode_event(format, &body)
            .map_err(|error| StorageError::Damaged(format!("event {seq} of a run: {error}")))?;
        records.push(RunRecord { seq, at, event });
    }
    Ok(records)
}

type StoredRunEvent = (Time, u16, Vec<u8>);

fn record(row: &Row<'_>) -> rusqlite::Result<(Seq, StoredRunEvent)> {
    let at = Time::from_micros(row.get(1)?);
    Ok((from_sql(row.get(0)?), (at, row.get(2)?, row.get(3)?)))
}

fn list(db: &Connection, filter: &RunFilter, limit: usize) -> Result<Vec<RunEntry>, StorageError> {
    let RunFilter { workspace, worker, status, active } = filter;
    let mut clauses: Vec<&str> = Vec::new();
    let mut by: Vec<Box<dyn ToSql>> = Vec::new();
    let mut given = |clause, value: Option<Box<dyn ToSql>>| {
        if let Some(value) = value {
            clauses.push(clause);
            by.push(value);
        }
    };
    given("runs.workspace = ?", workspace.clone().map(|text| Box::new(text) as Box<dyn ToSql>));
    given("runs.worker = ?", worker.clone().map(|text| Box::new(text) as Box<dyn ToSql>));
    given("runs.status = ?", status.map(|status| Box::new(status.name()) as Box<dyn ToSql>));
    given("runs.active = ?", active.then(|| Box::new(true) as Box<dyn ToSql>));
    by.push(Box::new(to_sql(limit as u64)));
    let wanted =
        if clauses.is_empty() { String::new() } else { format!("WHERE {}", clauses.join(" AND ")) };
    let clause = format!("{wanted} ORDER BY runs.key DESC LIMIT ?");
    let by: Vec<&dyn ToSql> = by.iter().map(|value| &**value).collect();
    entries(db, &clause, &by)
}
