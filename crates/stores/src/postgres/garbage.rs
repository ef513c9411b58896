//! Deletes what nobody needs: content that no session refers to, and what dead nodes left.
//!
//! Any node does so, while others put content and refer to it: putting makes content young, and only what was
//! young long ago is deleted. The name of an object is noted before the object is deleted, and never used
//! again.

use std::time::Duration;

use quintet_kernel::port::StorageError;
use tokio::runtime::Handle;
use tokio::time::{Instant, interval_at};
use tokio_postgres::Error;

use super::connection::Connection;
use super::url::Target;
use super::{to_sql, trouble};
use crate::objects::ObjectStore;

/// How often a node looks for what nobody needs.
const GARBAGE_INTERVAL: Duration = Duration::from_secs(3600);
/// How long a start deletes objects; the rest is left for later.
const START_TIMEOUT: Duration = Duration::from_secs(2);

/// What a node deletes, and after how long.
#[derive(Clone)]
pub(super) struct Garbage {
    pub(super) target: Target,
    pub(super) objects: Option<ObjectStore>,
    /// How long content that nobody refers to is kept; longer than storing it can take.
    pub(super) grace: Duration,
}

impl Garbage {
    /// Deletes what there is at the start of a node. An object store that does not answer keeps no node from
    /// starting.
    pub(super) async fn collect_at_start(&self, db: &Connection) -> Result<(), Error> {
        self.collect_rows(db).await?;
        let until = Instant::now() + START_TIMEOUT;
        report(self.collect_objects(db, Some(until)).await);
        Ok(())
    }

    /// Deletes now and then, until the store is closed.
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
            tracing::info!(deleted, "blobs that nobody refers to are deleted");
        }
        db.execute("DELETE FROM inbox WHERE sent < now() - interval '1 day'", &[]).await?;
        // Leases of sessions that never began, of nodes that are gone.
        let never = "DELETE FROM journals WHERE NOT begun AND NOT EXISTS (
            SELECT 1 FROM nodes WHERE nodes.incarnation = journals.holder)";
        db.execute(never, &[]).await.map(drop)
    }

    /// Deletes the objects that are noted as unused, until none is left or it is time.
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
        tracing::warn!(%error, "content that nobody needs is still there");
    }
}
