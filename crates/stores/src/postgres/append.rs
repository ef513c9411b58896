//! Encodes appends and writes several of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quintet_kernel::codec;
use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{Batch, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use tokio_postgres::Error;

use super::connection::Connection;
use super::to_sql;

const INSERT_EVENTS: &str = "INSERT INTO events (session, seq, at, format, body)
        SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::bytea[])";
const INSERT_REFS: &str = "INSERT INTO refs (blob, session, seq)
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[]) ON CONFLICT DO NOTHING";
const PUT_SUMMARIES: &str =
    "INSERT INTO sessions (key, id, created, updated, open, workspace, card, home)
    SELECT *, $8::text FROM unnest(
        $1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::boolean[], $6::text[], $7::text[]
    )
    ON CONFLICT (key) DO UPDATE SET updated = excluded.updated, open = excluded.open,
        workspace = excluded.workspace, card = excluded.card, home = excluded.home";
const MOVE_HEADS: &str = "UPDATE journals SET begun = true, head = moved.head,
        at = coalesce(moved.at, journals.at)
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS moved (session, head, at)
    WHERE journals.session = moved.session";

/// An append, encoded on the caller's thread.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) expected: Seq,
    events: Vec<Encoded>,
    /// The new summary row; `None` if it does not change.
    summary: Option<SummaryRow>,
}

#[derive(Debug)]
struct Encoded {
    at: i64,
    body: Vec<u8>,
    blobs: BTreeSet<BlobId>,
}

/// The row of a session in the session index.
#[derive(Clone, Debug)]
pub(super) struct SummaryRow {
    id: String,
    created: i64,
    updated: i64,
    open: bool,
    workspace: String,
    json: String,
}

impl Append {
    pub(super) fn new(expected: Seq, batch: &Batch) -> Result<Self, StorageError> {
        let is_text =
            batch.records.iter().all(|record| matches!(record.event, Event::TextAppended { .. }));
        let begins = expected == 0 || batch.records.is_empty();
        Self::encode(expected, batch, !is_text || begins)
    }

    /// The first append to a session that begins after an event of another one.
    pub(super) fn first(after: Seq, batch: &Batch) -> Result<Self, StorageError> {
        Self::encode(after, batch, true)
    }

    fn encode(expected: Seq, batch: &Batch, summarized: bool) -> Result<Self, StorageError> {
        let encoded = |record: &Arc<Record>| Encoded {
            at: record.at.micros(),
            body: codec::encode(&record.event),
            blobs: record.event.blobs().into_iter().cloned().collect(),
        };
        let events = batch.records.iter().map(encoded).collect();
        let summary = summarized.then(|| SummaryRow::new(&batch.summary)).transpose()?;
        Ok(Self { expected, events, summary })
    }

    /// The head after the append.
    pub(super) fn head(&self) -> Seq {
        self.expected + self.events.len() as Seq
    }
}

impl SummaryRow {
    pub(super) fn new(summary: &SessionSummary) -> Result<Self, StorageError> {
        let json = serde_json::to_string(summary)
            .map_err(|error| StorageError::Unavailable(format!("card: {error}")))?;
        Ok(Self {
            id: summary.id.to_string(),
            created: summary.created.micros(),
            updated: summary.updated.micros(),
            open: summary.open,
            workspace: summary.workspace.to_string_lossy().into_owned(),
            json,
        })
    }
}

/// Rows that are written with a few statements, however many appends they come from.
#[derive(Debug, Default)]
pub(super) struct Rows {
    events: EventRows,
    refs: (Vec<String>, Vec<i64>, Vec<i64>),
    summaries: BTreeMap<i64, SummaryRow>,
    heads: BTreeMap<SessionId, (i64, Option<i64>)>,
}

#[derive(Debug, Default)]
struct EventRows {
    sessions: Vec<i64>,
    seqs: Vec<i64>,
    times: Vec<i64>,
    formats: Vec<i16>,
    bodies: Vec<Vec<u8>>,
    /// Bytes of all bodies.
    bytes: usize,
}

impl Rows {
    /// Adds an accepted append.
    pub(super) fn append(&mut self, session: &SessionId, key: i64, append: &Append) {
        for (event, seq) in append.events.iter().zip(append.expected + 1..) {
            self.events.sessions.push(key);
            self.events.seqs.push(to_sql(seq));
            self.events.times.push(event.at);
            self.events.formats.push(codec::VERSION.cast_signed());
            self.events.bytes += event.body.len();
            self.events.bodies.push(event.body.clone());
            for blob in &event.blobs {
                self.refs.0.push(blob.to_string());
                self.refs.1.push(key);
                self.refs.2.push(to_sql(seq));
            }
        }
        let at = append.events.last().map(|event| event.at);
        let before = self.heads.get(session).and_then(|(_, at)| *at);
        self.heads.insert(session.clone(), (to_sql(append.head()), at.or(before)));
        if let Some(summary) = &append.summary {
            self.summarize(key, summary.clone());
        }
    }

    /// Bytes of the events to be written.
    pub(super) fn bytes(&self) -> usize {
        self.events.bytes
    }

    pub(super) fn summarize(&mut self, key: i64, summary: SummaryRow) {
        self.summaries.insert(key, summary);
    }

    /// Prepares all statements of [`Self::write`], so that they can be sent without waiting in
    /// between.
    pub(super) async fn prepare(db: &Connection) -> Result<(), Error> {
        for statement in [INSERT_EVENTS, INSERT_REFS, PUT_SUMMARIES, MOVE_HEADS] {
            db.prepared(statement).await?;
        }
        Ok(())
    }

    /// Writes the rows, in one round trip once they are prepared. Must run in a transaction; `home` is this
    /// node.
    pub(super) async fn write(self, db: &Connection, home: &str) -> Result<(), Error> {
        let (events, refs, summaries, heads) = tokio::join!(
            biased;
            self.events.write(db),
            write_refs(db, &self.refs),
            write_summaries(db, &self.summaries, home),
            write_heads(db, &self.heads),
        );
        events.and(refs).and(summaries).and(heads)
    }
}

impl EventRows {
    async fn write(&self, db: &Connection) -> Result<(), Error> {
        if self.seqs.is_empty() {
            return Ok(());
        }
        let Self { sessions, seqs, times, formats, bodies, bytes: _ } = self;
        db.execute(INSERT_EVENTS, &[sessions, seqs, times, formats, bodies]).await.map(drop)
    }
}

async fn write_refs(
    db: &Connection,
    (blobs, sessions, seqs): &(Vec<String>, Vec<i64>, Vec<i64>),
) -> Result<(), Error> {
    if blobs.is_empty() {
        return Ok(());
    }
    db.execute(INSERT_REFS, &[blobs, sessions, seqs]).await.map(drop)
}

async fn write_summaries(
    db: &Connection,
    summaries: &BTreeMap<i64, SummaryRow>,
    home: &str,
) -> Result<(), Error> {
    if summaries.is_empty() {
        return Ok(());
    }
    let keys: Vec<i64> = summaries.keys().copied().collect();
    fn column<'a, T>(
        of: &'a BTreeMap<i64, SummaryRow>,
        get: impl Fn(&'a SummaryRow) -> T,
    ) -> Vec<T> {
        of.values().map(get).collect()
    }
    let ids = column(summaries, |one| one.id.as_str());
    let created = column(summaries, |one| one.created);
    let updated = column(summaries, |one| one.updated);
    let open = column(summaries, |one| one.open);
    let workspaces = column(summaries, |one| one.workspace.as_str());
    let summaries = column(summaries, |one| one.json.as_str());
    let values: super::connection::Values<'_> =
        &[&keys, &ids, &created, &updated, &open, &workspaces, &summaries, &home];
    db.execute(PUT_SUMMARIES, values).await.map(drop)
}

async fn write_heads(
    db: &Connection,
    heads: &BTreeMap<SessionId, (i64, Option<i64>)>,
) -> Result<(), Error> {
    if heads.is_empty() {
        return Ok(());
    }
    let sessions: Vec<&str> = heads.keys().map(SessionId::as_str).collect();
    let (numbers, times): (Vec<i64>, Vec<Option<i64>>) = heads.values().copied().unzip();
    db.execute(MOVE_HEADS, &[&sessions, &numbers, &times]).await.map(drop)
}
