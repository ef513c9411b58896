//! The only task of a node that writes.
//!
//! A commit waits for the server's disk; changes that are queued meanwhile share the next commit,
//! in the order in which they were queued. The rows of all sessions in a group are locked first, in
//! the same order on every node; then each change is checked against them; then everything is
//! written and committed in one round trip. While a row is locked, no other node can take over its
//! session, and the server rolls back a node that stops in the middle, see [`connect`].

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{iter, slice};

use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Lease, StorageError, Wake};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Error;

use super::append::{Append, Rows};
use super::connection::Connection;
use super::health::Health;
use super::node::Node;
use super::url::Target;
use super::wakes::Moved;
use super::{from_sql, trouble};

/// Maximum number of changes in one commit, which bounds how long the first of them waits.
const LARGEST_GROUP: usize = 1024;
/// Maximum number of event bytes that are buffered before they are sent to the server; a single
/// change may exceed it.
const PENDING_BYTES_LIMIT: usize = 16 * 1024 * 1024;

/// The result of a change.
pub(super) type Answer<T> = Result<T, StorageError>;

type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A queued change.
pub(super) trait Change: Send {
    /// The sessions against whose rows the change is checked.
    fn sessions(&self) -> &[SessionId];
    /// Makes the change in the group's transaction, which is rolled back if this fails; the change
    /// may be applied again then. A refused change must not have written anything.
    fn apply<'a>(&'a mut self, group: &'a mut Group) -> LocalFuture<'a, Result<(), Error>>;
    /// Storage failed: the change may or may not be stored.
    fn fail(&mut self, error: StorageError);
    /// Sends the result to the caller.
    fn reply(self: Box<Self>);
}

/// A session's row after the earlier changes of the group.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: i64,
    holder: Option<i64>,
    epoch: i64,
    pub(super) begun: bool,
    pub(super) head: Seq,
}

/// A transaction in which changes are made.
pub(super) struct Group {
    db: Arc<Connection>,
    node: Arc<Node>,
    /// This node's incarnation, if its heartbeat is recent by the server's clock.
    alive: Option<i64>,
    rows: HashMap<SessionId, Row>,
    pending: Rows,
    moved: Moved,
}

impl Group {
    /// The connection, once all earlier appends are written on it.
    pub(super) async fn flushed(&mut self) -> Result<&Connection, Error> {
        std::mem::take(&mut self.pending).write(&self.db, &self.node.name).await?;
        Ok(&self.db)
    }

    /// The connection, for changes that do not depend on events.
    pub(super) fn db(&self) -> &Connection {
        &self.db
    }

    /// A session's row, if it has one.
    pub(super) fn row(&self, session: &SessionId) -> Option<&Row> {
        self.rows.get(session)
    }

    pub(super) fn row_mut(&mut self, session: &SessionId) -> Option<&mut Row> {
        self.rows.get_mut(session)
    }

    /// Treats a session as one without a lease.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.rows.remove(session);
    }

    /// The rows that will be written.
    pub(super) fn pending(&mut self) -> &mut Rows {
        &mut self.pending
    }

    /// The row of a session that this node may write to.
    pub(super) fn leased(&self, lease: &Lease) -> Answer<Row> {
        let row = self.rows.get(&lease.session).filter(|row| {
            self.alive.is_some() && row.holder == self.alive && from_sql(row.epoch) == lease.epoch
        });
        row.cloned().ok_or(StorageError::Fenced)
    }

    /// Records an accepted append.
    pub(super) fn append(&mut self, session: &SessionId, append: &Append) {
        let Some(row) = self.rows.get_mut(session) else { return };
        (row.begun, row.head) = (true, append.head());
        self.pending.append(session, row.key, append);
        self.moved.insert(session.clone(), Wake::Moved(append.head()));
    }

    /// Records an erased session.
    pub(super) fn erased(&mut self, session: &SessionId) {
        self.moved.insert(session.clone(), Wake::Erased);
    }
}

/// A change made by a closure.
struct Queued<T, F> {
    sessions: Vec<SessionId>,
    make: F,
    answer: Option<Answer<T>>,
    reply: oneshot::Sender<Answer<T>>,
}

impl<T, F> Change for Queued<T, F>
where
    T: Send + 'static,
    F: AsyncFn(&mut Group) -> Result<Answer<T>, Error> + Send + 'static,
{
    fn sessions(&self) -> &[SessionId] {
        &self.sessions
    }

    fn apply<'a>(&'a mut self, group: &'a mut Group) -> LocalFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.answer = Some((self.make)(group).await?);
            Ok(())
        })
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

/// The queue of changes.
#[derive(Clone)]
pub(super) struct Queue(mpsc::UnboundedSender<Box<dyn Change>>);

impl Queue {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Box<dyn Change>>) {
        let (queue, changes) = mpsc::unbounded_channel();
        (Self(queue), changes)
    }

    /// Queues a change immediately; the future only waits for the result. The change is checked
    /// against the rows of `sessions`.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        sessions: Vec<SessionId>,
        make: impl AsyncFn(&mut Group) -> Result<Answer<T>, Error> + Send + 'static,
    ) -> BoxFuture<'static, Answer<T>> {
        let (reply, answer) = oneshot::channel();
        // If the task has ended, the reply is dropped and the future fails.
        let _ = self.0.send(Box::new(Queued { sessions, make, answer: None, reply }));
        Box::pin(async { answer.await.unwrap_or_else(|_| Err(gone())) })
    }

    /// Queues a change that is never refused.
    pub(super) fn change<T: Send + 'static>(
        &self,
        make: impl AsyncFn(&mut Group) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'static, Answer<T>> {
        self.submit(Vec::new(), async move |group: &mut Group| make(group).await.map(Ok))
    }
}

/// Writes queued changes.
pub(super) struct Writer {
    pub(super) target: Target,
    pub(super) node: Arc<Node>,
    pub(super) health: Arc<Health>,
    pub(super) moved: mpsc::UnboundedSender<Moved>,
    pub(super) connection: Option<Arc<Connection>>,
}

impl Writer {
    /// Runs until the queue is closed and empty.
    pub(super) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<Box<dyn Change>>) {
        while let Some(first) = queue.recv().await {
            let others = iter::from_fn(|| queue.try_recv().ok()).take(LARGEST_GROUP - 1);
            let mut group: Vec<_> = iter::once(first).chain(others).collect();
            let written = self.commit(&mut group).await;
            if let Some(health) = written {
                self.health.note(health);
            }
            group.into_iter().for_each(Change::reply);
        }
    }

    /// Writes a group with one commit; returns what that shows about storage. If the server refuses
    /// it, each change is committed alone, so that one that cannot be written does not fail the
    /// others.
    async fn commit(&mut self, group: &mut [Box<dyn Change>]) -> Option<Answer<()>> {
        let error = match self.together(group).await {
            Ok(moved) => {
                // The listener may have ended with the store.
                let _ = self.moved.send(moved);
                return Some(Ok(()));
            }
            Err(error) => error,
        };
        let refused = error.as_db_error().is_some();
        if refused && let Some(db) = self.connection.as_ref().filter(|db| !db.is_closed()) {
            if db.batch("ROLLBACK").await.is_err() {
                self.connection = None;
            }
        } else {
            // The server rolls back the rest when the connection ends.
            self.connection = None;
        }
        if refused && group.len() > 1 {
            let mut worst = None;
            for one in group {
                worst = worst_of(worst, Box::pin(self.commit(slice::from_mut(one))).await);
            }
            return worst;
        }
        // A value that the database refuses (class 22), such as text with a NUL, says nothing about
        // its health.
        let refused_value = error.code().is_some_and(|code| {
            *code == tokio_postgres::error::SqlState::UNIQUE_VIOLATION
                || code.code().starts_with("22")
        });
        let why = trouble(error);
        group.iter_mut().for_each(|change| change.fail(why.clone()));
        if refused_value {
            return None;
        }
        tracing::error!(error = %why, changes = group.len(), "could not write to the database");
        Some(Err(why))
    }

    async fn together(&mut self, changes: &mut [Box<dyn Change>]) -> Result<Moved, Error> {
        let db = self.connected().await?;
        let mut group = self.begin(db, changes).await?;
        for change in changes {
            change.apply(&mut group).await?;
            if group.pending.bytes() > PENDING_BYTES_LIMIT {
                group.flushed().await?;
            }
        }
        let Group { db, pending, moved, .. } = group;
        Rows::prepare(&db).await?;
        let (written, committed) =
            tokio::join!(biased; pending.write(&db, &self.node.name), db.batch("COMMIT"));
        written?;
        committed?;
        Ok(moved)
    }

    async fn connected(&mut self) -> Result<Arc<Connection>, Error> {
        if let Some(open) = self.connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Arc::clone(open));
        }
        let opened = connect(&self.target, self.node.lease).await?;
        Ok(Arc::clone(self.connection.insert(Arc::new(opened))))
    }

    /// Begins a transaction, locks the rows against which the changes are checked, and checks
    /// whether this node is alive.
    async fn begin(
        &self,
        db: Arc<Connection>,
        changes: &[Box<dyn Change>],
    ) -> Result<Group, Error> {
        let mut sessions: Vec<&str> =
            changes.iter().flat_map(|change| change.sessions()).map(SessionId::as_str).collect();
        sessions.sort_unstable();
        sessions.dedup();
        let incarnation = self.node.incarnation();
        let (begun, alive, rows) = tokio::join!(
            biased;
            db.batch("BEGIN"),
            is_alive(&db, &self.node.name, incarnation),
            lock_rows(&db, &sessions),
        );
        begun?;
        let alive = alive?.then_some(incarnation);
        let (rows, node) = (rows?, Arc::clone(&self.node));
        let (pending, moved) = (Rows::default(), HashMap::new());
        Ok(Group { db, node, alive, rows, pending, moved })
    }
}

/// A connection for writing. The server rolls back open transactions of a stopped node, so that
/// others wait for its locks no longer than for its lease.
pub(super) async fn connect(target: &Target, lease: Duration) -> Result<Connection, Error> {
    let db = Connection::open(target, &tokio::runtime::Handle::current()).await?;
    let (idle, statement) = (lease.as_millis().max(200) / 2, WRITE_TIMEOUT.as_millis());
    db.batch(&format!(
        "SET idle_in_transaction_session_timeout = {idle}; SET statement_timeout = {statement}"
    ))
    .await?;
    Ok(db)
}

/// Maximum time of one statement of the writer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

async fn is_alive(db: &Connection, name: &str, incarnation: i64) -> Result<bool, Error> {
    let query = "SELECT 1 FROM nodes
        WHERE name = $1 AND incarnation = $2 AND heartbeat > clock_timestamp() - lease";
    Ok(db.row(query, &[&name, &incarnation]).await?.is_some())
}

async fn lock_rows(db: &Connection, sessions: &[&str]) -> Result<HashMap<SessionId, Row>, Error> {
    if sessions.is_empty() {
        return Ok(HashMap::new());
    }
    let query = "SELECT session, key, holder, epoch, begun, head FROM journals
        WHERE session = ANY($1) ORDER BY session FOR UPDATE";
    let rows = db.rows(query, &[&sessions]).await?;
    let row = |row: tokio_postgres::Row| {
        let session = SessionId::parse(row.get(0))?;
        let (key, holder, epoch) = (row.get(1), row.get(2), row.get(3));
        Some((session, Row { key, holder, epoch, begun: row.get(4), head: from_sql(row.get(5)) }))
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

fn worst_of(one: Option<Answer<()>>, other: Option<Answer<()>>) -> Option<Answer<()>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(other)),
        (one, other) => one.or(other),
    }
}

fn gone() -> StorageError {
    StorageError::Unavailable("the journal's writer is gone".into())
}
