//! Deletes unreferenced content, and the leftovers of dead nodes.
//!
//! Any node does this while others store content and refer to it. Storing content marks it as
//! recently used, and only content that was not used for a long time is deleted. The name of an
//! object is recorded before the object is deleted, and never used again.

use std::time::Duration;

use quintet_kernel::port::StorageError;
use tokio::runtime::Handle;
use tokio::time::{Instant, interval_at};
use tokio_postgres::Error;

use super::connection::Connection;
use super::url::Target;
use super::{to_sql, trouble};
use crate::objects::ObjectStore;

/// How often a node deletes unreferenced content.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(3600);
/// Maximum time for deleting objects at start; the rest is deleted later.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// The garbage collector of a node.
#[derive(Clone)]
pub(super) struct Garbage {
    pub(super) target: Target,
    pub(super) objects: Option<ObjectStore>,
    /// How long unreferenced content is kept; longer than storing it can take.
    pub(super) grace: Duration,
}

impl Garbage {
    /// Collects garbage when a node starts. An object store that does not respond must not prevent
    /// the start.
    pub(super) async fn collect_at_start(&self, db: &Connection) -> Result<(), Error> {
        self.collect_rows(db).await?;
        let until = Instant::now() + START_TIMEOUT;
        report(self.collect_objects(db, Some(until)).await);
        Ok(())
    }

    /// Collects garbage at intervals, until the store is closed.
    pub(super) async fn run(self) {
        let mut hours = interval_at(Instant::now() + GARBAGE_INTERVAL, GARBAGE_INTERVAL);
        loop {
            hours.tick().await;
            let collected = async {
                let db =
                    Connection::open(&self.target, &Handle::current()).await.map_err(trouble)?;
                self.collect_rows(&db).await.map_err(trouble)?;
                self.collect_objects(&db, None).await
            };
            report(collected.await);
        }
    }

    async fn collect_rows(&self, db: &Connection) -> Result<(), Error> {
        let unused = "WITH deleted AS (
                DELETE FROM blobs WHERE used <= now() - $1::bigint * interval '1 millisecond'
                AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.blob = blobs.id) RETURNING object
            ), noted AS (
                INSERT INTO unused_objects SELECT object FROM deleted WHERE object IS NOT NULL
            )
            SELECT count(*) FROM deleted";
        let grace = to_sql(u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX));
        let deleted: i64 = db.row(unused, &[&grace]).await?.map_or(0, |row| row.get(0));
        if deleted > 0 {
            tracing::info!(deleted, "deleted unreferenced blobs");
        }
        db.execute("DELETE FROM inbox WHERE sent < now() - interval '1 day'", &[]).await?;
        // Leases of sessions without events, of nodes that no longer exist.
        let never = "DELETE FROM journals WHERE NOT begun AND NOT EXISTS (
            SELECT 1 FROM nodes WHERE nodes.incarnation = journals.holder)";
        db.execute(never, &[]).await.map(drop)
    }

    /// Deletes the objects that are recorded as unused, until none is left or the time is up.
    async fn collect_objects(
        &self,
        db: &Connection,
        until: Option<Instant>,
    ) -> Result<(), StorageError> {
        let Some(store) = &self.objects else { return Ok(()) };
        let unused = db.rows("SELECT name FROM unused_objects", &[]).await.map_err(trouble)?;
        for row in &unused {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            let name: &str = row.get(0);
            store.objects.delete(name).await?;
            let deleted = "DELETE FROM unused_objects WHERE name = $1";
            db.execute(deleted, &[&name]).await.map_err(trouble)?;
        }
        Ok(())
    }
}

fn report(collected: Result<(), StorageError>) {
    if let Err(error) = collected {
        tracing::warn!(%error, "could not delete unreferenced content");
    }
}
