//! This node: its row, its heartbeat and its leases, which last as long as the heartbeat.
//!
//! A lease names the incarnation that holds it. A node that was silent for longer than its lease
//! gets a new incarnation, so that all its earlier leases are void. Only the server's clock is
//! used.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Lease, Leases, NodeAddress, StorageError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_postgres::Error;

use super::connection::Connection;
use super::url::Target;
use super::writer::Group;
use super::{Store, from_sql, to_sql, trouble};

/// True for a row of `nodes` whose node is alive.
pub(super) const ALIVE: &str = "nodes.heartbeat > clock_timestamp() - nodes.lease";

/// True for a row of `sessions` that a node may own: `$2` is its name, `$3` the folders that all
/// nodes have. A session without a home may be owned by any node.
pub(super) const HAS_WORKSPACE: &str = "(sessions.home IN ($2, '') OR EXISTS (
    SELECT 1 FROM unnest($3::text[]) AS folder
    WHERE sessions.workspace = folder OR starts_with(sessions.workspace, folder || '/')))";

/// Heartbeats per lease duration.
const BEATS: u32 = 4;
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// This node and its state.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) advertise: Option<String>,
    pub(super) lease: Duration,
    /// Folders that all nodes have, without a trailing slash.
    pub(super) shared: Vec<String>,
    incarnation: AtomicI64,
    /// The next incarnation, while it is being registered; 0 for none.
    next_incarnation: AtomicI64,
    draining: AtomicBool,
    /// Number of times that all leases were lost.
    lost: watch::Sender<u64>,
    /// Why this node cannot continue.
    ended: watch::Sender<Option<String>>,
}

impl Node {
    pub(super) fn new(address: NodeAddress, lease: Duration, shared: Vec<String>) -> Self {
        let NodeAddress { name, advertise } = address;
        Self {
            name,
            advertise,
            lease,
            shared,
            incarnation: AtomicI64::new(0),
            next_incarnation: AtomicI64::new(0),
            draining: AtomicBool::new(false),
            lost: watch::Sender::new(0),
            ended: watch::Sender::new(None),
        }
    }

    pub(super) fn incarnation(&self) -> i64 {
        self.incarnation.load(Ordering::Acquire)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    pub(super) fn note_draining(&self, draining: bool) {
        self.draining.store(draining, Ordering::Relaxed);
    }

    /// Resolves with the reason when this node cannot continue.
    pub(super) fn ended(&self) -> impl Future<Output = String> + Send + use<> {
        let mut ended = self.ended.subscribe();
        async move {
            let why = ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
            why.unwrap_or_else(|| "the store is closed".into())
        }
    }

    pub(super) fn end(&self, why: impl Display) {
        self.ended.send_replace(Some(why.to_string()));
    }

    fn lose(&self) {
        self.lost.send_modify(|times| *times += 1);
    }

    /// Registers this node's name once no other daemon has it: a dead daemon is replaced at once, a
    /// live one gets the time of its lease to leave.
    pub(super) async fn register(&self, db: &Connection) -> Result<(), String> {
        let failed = |error: Error| super::reason(&error);
        let deadline = Instant::now() + self.lease;
        let taken = format!("SELECT 1 FROM nodes WHERE name = $1 AND {ALIVE}");
        while !self.hold_name(db).await.map_err(failed)? {
            let alive = db.row(&taken, &[&self.name]).await.map_err(failed)?.is_some();
            if alive && Instant::now() > deadline {
                return Err(format!(
                    "another daemon is the node {:?}: give this one another node.name",
                    self.name
                ));
            }
            if !alive {
                break;
            }
            sleep(RETRY_INTERVAL).await;
        }
        let take = "INSERT INTO nodes
                (name, incarnation, advertise, heartbeat, lease, shared_workspaces, draining)
            VALUES ($1, nextval('incarnations'), $2, clock_timestamp(),
                $3::bigint * interval '1 millisecond', $4, false)
            ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation,
                advertise = excluded.advertise, heartbeat = excluded.heartbeat,
                lease = excluded.lease, shared_workspaces = excluded.shared_workspaces,
                draining = false
            RETURNING incarnation";
        let lease = to_sql(self.lease.as_millis() as u64);
        let values: super::connection::Values<'_> =
            &[&self.name, &self.advertise, &lease, &self.shared];
        let row = db.row(take, values).await.map_err(failed)?;
        let incarnation = row.map_or(0, |row| row.get(0));
        self.incarnation.store(incarnation, Ordering::Release);
        Ok(())
    }

    /// Locks this node's name until the connection ends, at the latest with the process; false if
    /// another daemon holds it.
    async fn hold_name(&self, db: &Connection) -> Result<bool, Error> {
        let hold = "SELECT pg_try_advisory_lock(hashtext(current_schema()), hashtext($1))";
        Ok(db.row(hold, &[&self.name]).await?.is_some_and(|row| row.get(0)))
    }

    /// Sends heartbeats until the task is dropped, or another daemon has this node's name.
    pub(super) async fn beat(self: Arc<Self>, first: Connection, target: Target) {
        let interval = self.lease / BEATS;
        let mut connection = Some(first);
        let (mut last, mut lost) = (Instant::now(), false);
        let mut next = last + interval;
        loop {
            sleep_until(next).await;
            let sent = Instant::now();
            // The lease is counted from the time a heartbeat was sent, because the server records
            // it later.
            let (mut limit, ends) = (sent + interval.max(RETRY_INTERVAL), last + self.lease);
            if !lost && ends > sent {
                limit = limit.min(ends);
            }
            match timeout_at(limit, self.once(&mut connection, &target)).await {
                Ok(Ok(Beat::Alive)) => (last, lost, next) = (sent, false, sent + interval),
                Ok(Ok(Beat::Reborn)) => {
                    if !std::mem::replace(&mut lost, false) {
                        tracing::error!("this node was silent for longer than its lease");
                    }
                    // Leases that were acquired under the old incarnation since then are void, too.
                    self.lose();
                    (last, next) = (sent, sent + interval);
                }
                Ok(Ok(Beat::Replaced)) => {
                    self.lose();
                    self.end(format!("another daemon is the node {:?} now", self.name));
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(error = super::reason(&error), "no heartbeat");
                    (connection, next) = (None, sent + RETRY_INTERVAL.min(interval));
                }
                Err(_) => {
                    tracing::warn!("no heartbeat: the database does not answer");
                    (connection, next) = (None, sent + RETRY_INTERVAL.min(interval));
                }
            }
            if !lost && last.elapsed() >= self.lease {
                tracing::error!(
                    "no heartbeat for longer than the lease: all sessions are released"
                );
                lost = true;
                self.lose();
            }
        }
    }

    async fn once(
        &self,
        connection: &mut Option<Connection>,
        target: &Target,
    ) -> Result<Beat, Error> {
        let db = match connection {
            Some(open) if !open.is_closed() => open,
            closed => {
                let handle = tokio::runtime::Handle::current();
                let opened = Connection::open(target, &handle).await?;
                self.hold_name(&opened).await?;
                closed.insert(opened)
            }
        };
        let incarnation = self.incarnation();
        let renew = format!(
            "UPDATE nodes SET heartbeat = clock_timestamp()
             WHERE name = $1 AND incarnation = $2 AND {ALIVE} RETURNING draining"
        );
        if let Some(row) = db.row(&renew, &[&self.name, &incarnation]).await? {
            self.note_draining(row.get(0));
            return Ok(Beat::Alive);
        }
        // The number is drawn before it is used and kept until the reply is known: an update whose
        // reply was lost is repeated, not mistaken for another daemon's.
        let mut next = self.next_incarnation.load(Ordering::Acquire);
        if next == 0 {
            let row = db.row("SELECT nextval('incarnations')", &[]).await?;
            next = row.map_or(0, |row| row.get(0));
            self.next_incarnation.store(next, Ordering::Release);
        }
        let reborn = "UPDATE nodes SET heartbeat = clock_timestamp(), incarnation = $3
            WHERE name = $1 AND incarnation IN ($2, $3) RETURNING incarnation";
        let Some(row) = db.row(reborn, &[&self.name, &incarnation, &next]).await? else {
            return Ok(Beat::Replaced);
        };
        self.incarnation.store(row.get(0), Ordering::Release);
        self.next_incarnation.store(0, Ordering::Release);
        Ok(Beat::Reborn)
    }

    /// Leaves the cluster, so that other nodes need not wait for the end of the lease.
    pub(super) async fn leave(&self, db: &Connection) -> Result<(), Error> {
        let leave = "UPDATE nodes SET heartbeat = '-infinity' WHERE name = $1 AND incarnation = $2";
        db.execute(leave, &[&self.name, &self.incarnation()]).await.map(drop)
    }
}

/// The result of a heartbeat.
enum Beat {
    Alive,
    /// The lease had expired; this node is alive again under a new incarnation.
    Reborn,
    /// Another daemon has this node's name.
    Replaced,
}

impl Leases for Store {
    fn acquire(&self, session: &SessionId) -> BoxFuture<'_, Result<Lease, StorageError>> {
        let (session, node) = (session.clone(), Arc::clone(&self.node));
        self.pool.run(move |db| async move {
            match take(&db, &session, &node).await.map_err(trouble)? {
                Some(epoch) => Ok(Lease { session, epoch: from_sql(epoch) }),
                None => Err(holder(&db, &session, &node).await.map_err(trouble)?),
            }
        })
    }

    fn release(&self, lease: &Lease) -> BoxFuture<'_, Result<(), StorageError>> {
        let lease = lease.clone();
        // Ordered with queued appends.
        self.queue.submit(vec![lease.session.clone()], async move |group: &mut Group| {
            let Ok(row) = group.leased(&lease) else { return Ok(Ok(())) };
            let release = if row.begun {
                "UPDATE journals SET holder = NULL WHERE session = $1"
            } else {
                "DELETE FROM journals WHERE session = $1"
            };
            group.flushed().await?.execute(release, &[&lease.session.as_str()]).await?;
            group.forget(&lease.session);
            Ok(Ok(()))
        })
    }

    fn lost(&self) -> BoxFuture<'static, ()> {
        let mut lost = self.node.lost.subscribe();
        Box::pin(async move {
            if lost.changed().await.is_err() {
                std::future::pending().await
            }
        })
    }
}

/// Acquires a session, unless another live node owns it or only another node has its workspace;
/// returns the new epoch.
async fn take(db: &Connection, session: &SessionId, node: &Node) -> Result<Option<i64>, Error> {
    let take = format!(
        "INSERT INTO journals AS journal (session, key, holder, epoch)
         VALUES ($1, nextval('session_keys'), $4, nextval('epochs'))
         ON CONFLICT (session) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch
         WHERE NOT EXISTS (
             SELECT 1 FROM nodes
             WHERE nodes.incarnation = journal.holder AND nodes.incarnation <> $4 AND {ALIVE}
         ) AND NOT EXISTS (
             SELECT 1 FROM sessions WHERE sessions.id = $1 AND NOT {HAS_WORKSPACE}
         )
         RETURNING epoch"
    );
    let (id, incarnation) = (session.as_str(), node.incarnation());
    let row = db.row(&take, &[&id, &node.name, &node.shared, &incarnation]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// The node that owns a session that could not be acquired.
async fn holder(db: &Connection, session: &SessionId, node: &Node) -> Result<StorageError, Error> {
    let query = format!(
        "SELECT nodes.name, nodes.advertise FROM journals
         LEFT JOIN sessions ON sessions.id = journals.session
         JOIN nodes ON nodes.incarnation = journals.holder AND {ALIVE} OR nodes.name = sessions.home
         WHERE journals.session = $1 AND nodes.name <> $2
         ORDER BY nodes.incarnation IS NOT DISTINCT FROM journals.holder DESC LIMIT 1"
    );
    let row = db.row(&query, &[&session.as_str(), &node.name]).await?;
    Ok(match row {
        Some(row) => StorageError::Held(NodeAddress { name: row.get(0), advertise: row.get(1) }),
        // The owner is just leaving; the next attempt will succeed.
        None => StorageError::Unavailable("the session's owner is leaving".into()),
    })
}
