//! Runs: their journals, and a row for each from which the queue and the leases are read.
//!
//! `progress` in the row is computed from the journal and written with every event. If it cannot be
//! read, because another version wrote it, the journal is replayed. The row is locked while an
//! event is checked, so that only one of several nodes appends it.

use std::future::ready;

use quintet_kernel::codec;
use quintet_kernel::event::Seq;
use quintet_kernel::id::RunId;
use quintet_kernel::port::{
    BoxFuture, Page, RunEntry, RunFilter, RunJournal, StorageError, WorkerRuns,
};
use quintet_kernel::run::{
    RunProgress, RunRecord, RunState, RunStatus, decode_event, encode_event, replay,
};
use quintet_kernel::time::Time;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::connection::{Connection, Values};
use super::writer::{Answer, Group};
use super::{Store, from_sql, to_sql, trouble};

impl RunJournal for Store {
    fn begin(
        &self,
        run: RunState,
        record: RunRecord,
        most_active: usize,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let event = match Encoded::new(&record, &run.progress) {
            Ok(event) => event,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.queue.change(async move |group: &mut Group| {
            begin(group.db(), &run, &event, most_active).await
        })
    }

    fn append(
        &self,
        run: &RunId,
        record: RunRecord,
        progress: RunProgress,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let run = run.clone();
        let event = match Encoded::new(&record, &progress) {
            Ok(event) => event,
            Err(error) => return Box::pin(ready(Err(error))),
        };
        self.queue.submit(Vec::new(), async move |group: &mut Group| {
            append(group.db(), &run, &event, &progress).await
        })
    }

    fn renew(&self, worker: &str, at: Time, all: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let worker = worker.to_owned();
        self.queue.change(async move |group: &mut Group| {
            let renew = "UPDATE runs SET heartbeat = greatest(heartbeat, $2)
                WHERE worker = $1 AND leased AND ($3 OR status <> $4)";
            let values: Values<'_> = &[&worker, &at.micros(), &all, &RunStatus::Queued.name()];
            group.db().execute(renew, values).await.map(drop)
        })
    }

    fn run(&self, run: &RunId) -> BoxFuture<'_, Result<Option<RunEntry>, StorageError>> {
        let run = run.clone();
        self.pool.run(move |db| async move {
            Ok(entries(&db, "WHERE runs.id = $1", &[&run.as_str()]).await?.pop())
        })
    }

    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, StorageError>> {
        let run = run.clone();
        self.pool.run(move |db| async move {
            let query = "SELECT key FROM runs WHERE id = $1";
            let row = db.row(query, &[&run.as_str()]).await.map_err(trouble)?;
            match row {
                Some(row) => read(&db, row.get(0), after, page).await,
                None => Ok(Vec::new()),
            }
        })
    }

    fn waiting(
        &self,
        workspace: &str,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let workspace = workspace.to_owned();
        self.pool.run(move |db| async move {
            let query =
                "SELECT id FROM runs WHERE workspace = $1 AND waiting ORDER BY key LIMIT $2";
            ids(&db, query, &[&workspace, &to_sql(limit as u64)]).await
        })
    }

    fn of_worker(&self, worker: &str) -> BoxFuture<'_, Result<WorkerRuns, StorageError>> {
        let worker = worker.to_owned();
        self.pool.run(move |db| async move {
            let oldest = "SELECT min(heartbeat) FROM runs WHERE worker = $1 AND leased";
            let oldest = db.row(oldest, &[&worker]).await.map_err(trouble)?;
            let heartbeat: Option<i64> = oldest.and_then(|row| row.get(0));
            let clause = "WHERE runs.worker = $1 AND runs.commands > 0 ORDER BY runs.key";
            let commanded = entries(&db, clause, &[&worker]).await?;
            Ok(WorkerRuns { heartbeat: heartbeat.map(Time::from_micros), commanded })
        })
    }

    fn active(&self, workspace: Option<&str>) -> BoxFuture<'_, Result<Vec<RunId>, StorageError>> {
        let workspace = workspace.map(String::from);
        self.pool.run(move |db| async move {
            let query = "SELECT id FROM runs
                WHERE active AND ($1::text IS NULL OR workspace = $1) ORDER BY key";
            ids(&db, query, &[&workspace]).await
        })
    }

    fn silent(
        &self,
        before: Time,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        self.pool.run(move |db| async move {
            let clause = "WHERE runs.leased AND runs.heartbeat < $1
                ORDER BY runs.heartbeat LIMIT $2";
            entries(&db, clause, &[&before.micros(), &to_sql(limit as u64)]).await
        })
    }

    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, StorageError>> {
        self.pool.run(move |db| async move {
            let RunFilter { workspace, worker, status, active } = &filter;
            let status = status.map(|status| status.name());
            let clause = "WHERE ($1::text IS NULL OR runs.workspace = $1)
                AND ($2::text IS NULL OR runs.worker = $2)
                AND ($3::text IS NULL OR runs.status = $3) AND (NOT $4 OR runs.active)
                ORDER BY runs.key DESC LIMIT $5";
            let values: Values<'_> = &[workspace, worker, &status, active, &to_sql(limit as u64)];
            entries(&db, clause, values).await
        })
    }
}

/// An event and the run after it, encoded on the caller's thread.
struct Encoded {
    seq: Seq,
    at: i64,
    body: Vec<u8>,
    progress: String,
}

impl Encoded {
    fn new(record: &RunRecord, progress: &RunProgress) -> Result<Self, StorageError> {
        let progress = serde_json::to_string(progress)
            .map_err(|error| StorageError::Unavailable(format!("run: {error}")))?;
        let body = encode_event(&record.event);
        Ok(Self { seq: record.seq, at: record.at.micros(), body, progress })
    }

    async fn insert(&self, db: &Connection, key: i64) -> Result<(), Error> {
        let insert = "INSERT INTO run_events (run, seq, at, format, body)
            VALUES ($1, $2, $3, $4, $5)";
        let (seq, format) = (to_sql(self.seq), codec::VERSION.cast_signed());
        db.execute(insert, &[&key, &seq, &self.at, &format, &self.body]).await.map(drop)
    }
}

async fn begin(
    db: &Connection,
    run: &RunState,
    event: &Encoded,
    most_active: usize,
) -> Result<bool, Error> {
    // Two nodes must not both find a free slot.
    let alone = "SELECT pg_advisory_xact_lock(hashtext(current_schema()), hashtext('runs ' || $1))";
    db.rows(alone, &[&run.brief.workspace]).await?;
    let active = "SELECT count(*) FROM runs WHERE workspace = $1 AND active";
    let active = db.row(active, &[&run.brief.workspace]).await?;
    if active.is_some_and(|row| from_sql(row.get(0)) >= most_active as u64) {
        return Ok(false);
    }
    let progress = &run.progress;
    let insert =
        "INSERT INTO runs (id, workspace, status, worker, commands, waiting, active, leased,
            heartbeat, updated, head, progress)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING key";
    let (id, workspace) = (run.id.as_str(), &run.brief.workspace);
    let columns = Columns::of(progress, event);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&id, workspace];
    values.extend(columns.values());
    if let Some(row) = db.row(insert, &values).await? {
        event.insert(db, row.get(0)).await?;
    }
    Ok(true)
}

async fn append(
    db: &Connection,
    run: &RunId,
    event: &Encoded,
    progress: &RunProgress,
) -> Result<Answer<()>, Error> {
    let query = "SELECT key, head FROM runs WHERE id = $1 FOR UPDATE";
    let Some(row) = db.row(query, &[&run.as_str()]).await? else {
        return Ok(Err(StorageError::Missing(format!("run {run}"))));
    };
    let (key, head): (i64, Seq) = (row.get(0), from_sql(row.get(1)));
    if head.checked_add(1) != Some(event.seq) {
        return Ok(Err(StorageError::Conflict(head)));
    }
    event.insert(db, key).await?;
    let update = "UPDATE runs SET status = $2, worker = $3, commands = $4, waiting = $5,
            active = $6, leased = $7, heartbeat = greatest(heartbeat, $8), updated = $9,
            head = $10, progress = $11
        WHERE key = $1";
    let columns = Columns::of(progress, event);
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&key];
    values.extend(columns.values());
    db.execute(update, &values).await?;
    Ok(Ok(()))
}

/// The columns of a run's row that follow from its progress.
struct Columns<'a> {
    status: &'static str,
    worker: Option<&'a str>,
    commands: i64,
    waiting: bool,
    active: bool,
    leased: bool,
    heartbeat: Option<i64>,
    updated: i64,
    head: i64,
    progress: &'a str,
}

impl<'a> Columns<'a> {
    fn of(progress: &'a RunProgress, event: &'a Encoded) -> Self {
        Self {
            status: progress.status.name(),
            worker: progress.worker(),
            commands: to_sql(progress.controls.len() as u64),
            waiting: progress.is_waiting(),
            active: progress.status.is_active(),
            leased: progress.is_leased(),
            heartbeat: progress.heartbeat.map(Time::micros),
            updated: event.at,
            head: to_sql(event.seq),
            progress: &event.progress,
        }
    }

    fn values(&self) -> [&(dyn ToSql + Sync); 10] {
        [
            &self.status,
            &self.worker,
            &self.commands,
            &self.waiting,
            &self.active,
            &self.leased,
            &self.heartbeat,
            &self.updated,
            &self.head,
            &self.progress,
        ]
    }
}

async fn ids(db: &Connection, query: &str, by: Values<'_>) -> Result<Vec<RunId>, StorageError> {
    let rows = db.rows(query, by).await.map_err(trouble)?;
    // An invalid id can only be damage; failing would hide the other runs.
    Ok(rows.iter().filter_map(|row| RunId::parse(row.get(0))).collect())
}

async fn entries(
    db: &Connection,
    clause: &str,
    by: Values<'_>,
) -> Result<Vec<RunEntry>, StorageError> {
    let query = format!(
        "SELECT runs.key, runs.id, runs.heartbeat, runs.progress, at, format, body
         FROM runs JOIN run_events ON run = runs.key AND seq = 1 {clause}"
    );
    let mut entries = Vec::new();
    for row in db.rows(&query, by).await.map_err(trouble)? {
        entries.push(entry(db, &row).await?);
    }
    Ok(entries)
}

async fn entry(db: &Connection, row: &Row) -> Result<RunEntry, StorageError> {
    let (key, text): (i64, &str) = (row.get(0), row.get(1));
    let damaged = || StorageError::Damaged(format!("run {text}"));
    let id = RunId::parse(text).ok_or_else(damaged)?;
    let first = record(1, row.get(4), row.get(5), row.get(6))?;
    let run = match serde_json::from_str(row.get(3)) {
        Ok(progress) => RunState::begun(id, &first).map(|run| RunState { progress, ..run }),
        Err(_) => {
            let page = Page { events: usize::MAX, bytes: usize::MAX };
            replay(&id, &read(db, key, 0, page).await?)
        }
    };
    let heartbeat: Option<i64> = row.get(2);
    Ok(RunEntry { run: run.ok_or_else(damaged)?, heartbeat: heartbeat.map(Time::from_micros) })
}

async fn read(
    db: &Connection,
    key: i64,
    after: Seq,
    page: Page,
) -> Result<Vec<RunRecord>, StorageError> {
    let query = "SELECT seq, at, format, body FROM run_events
        WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let values: Values<'_> = &[&key, &to_sql(after), &to_sql(page.events as u64)];
    let rows = db.rows(query, values).await.map_err(trouble)?;
    let (mut records, mut bytes) = (Vec::new(), 0_usize);
    for row in &rows {
        let body: &[u8] = row.get(3);
        bytes = bytes.saturating_add(body.len());
        if bytes > page.bytes && !records.is_empty() {
            break;
        }
        records.push(record(from_sql(row.get(0)), row.get(1), row.get(2), body)?);
    }
    Ok(records)
}

fn record(seq: Seq, at: i64, format: i16, body: &[u8]) -> Result<RunRecord, StorageError> {
    let event = decode_event(format.cast_unsigned(), body)
        .map_err(|error| StorageError::Damaged(format!("event {seq} of a run: {error}")))?;
    Ok(RunRecord { seq, at: Time::from_micros(at), event })
}
