//! Whether the database accepts writes.
//!
//! Every commit of the journal counts as a check. If none is recent, a check writes a probe
//! file next to the database, because a full disk may still have room in the database's own
//! files, and then writes through the writer thread, because only that shows errors of the
//! database.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::port::{self, BoxFuture, StorageError};
use rusqlite::Connection;
use tokio::time::{Instant, timeout};

use super::SqliteStore;

/// How long a successful check is valid; a failed one is valid for `UNHEALTHY_TTL`.
const HEALTHY_TTL: Duration = Duration::from_secs(3);
const UNHEALTHY_TTL: Duration = Duration::from_secs(1);
/// How long a probe may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes that a probe writes.
const PROBE_BYTES: usize = 64 * 1024;

type Health = Result<(), StorageError>;

/// The result of the last write.
#[derive(Debug)]
pub(super) struct WriteHealth {
    /// The probe file.
    file: PathBuf,
    last: Mutex<LastCheck>,
}

#[derive(Debug, Default)]
struct LastCheck {
    health: Option<(Instant, Health)>,
    /// True while a check runs. One at a time: a hanging disk blocks a thread per check.
    trying: bool,
}

/// A running check, until dropped.
struct CheckGuard(Arc<WriteHealth>);

impl Drop for CheckGuard {
    fn drop(&mut self) {
        self.0.last().trying = false;
    }
}

impl WriteHealth {
    /// The health of the database at a path.
    pub(super) fn of(database: &Path) -> Self {
        Self { file: database.with_extension("pulse"), last: Mutex::default() }
    }

    /// Records the result of a write.
    pub(super) fn note(&self, health: Health) {
        self.note_at(Instant::now(), health);
    }

    fn note_at(&self, now: Instant, health: Health) {
        self.last().health = Some((now, health));
    }

    /// The last result, unless it is too old. Then the caller must check, and other callers
    /// meanwhile get the last result.
    fn known(self: &Arc<Self>, now: Instant) -> Result<Health, CheckGuard> {
        let mut last = self.last();
        match &last.health {
            Some((at, health))
                if now < *at + if health.is_ok() { HEALTHY_TTL } else { UNHEALTHY_TTL } =>
            {
                Ok(health.clone())
            }
            health if last.trying => Ok(health.clone().map_or(Ok(()), |(_, health)| health)),
            _ => {
                last.trying = true;
                Err(CheckGuard(Arc::clone(self)))
            }
        }
    }

    fn last(&self) -> MutexGuard<'_, LastCheck> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl port::StorageHealth for SqliteStore {
    fn check(&self) -> BoxFuture<'_, Health> {
        Box::pin(async {
            let trying = match self.write_health.known(Instant::now()) {
                Ok(known) => return known,
                Err(trying) => trying,
            };
            let health =
                timeout(WRITE_TIMEOUT, self.try_writing(trying)).await.unwrap_or_else(|_| {
                    Err(StorageError::Unavailable("the disk does not answer".into()))
                });
            self.write_health.note(health.clone());
            health
        })
    }
}

impl SqliteStore {
    /// Writes the probes. The check counts as running until the disk has responded, even if
    /// the caller gave up.
    async fn try_writing(&self, trying: CheckGuard) -> Health {
        let file = self.write_health.file.clone();
        let written = tokio::task::spawn_blocking(move || (write_probe(&file), trying)).await;
        let unavailable = |why: String| StorageError::Unavailable(why);
        let (written, _trying) =
            written.map_err(|_| unavailable("the disk cannot be tried".into()))?;
        written.map_err(|error| unavailable(error.to_string()))?;
        self.writer.change(self.epoch, probe_database).await
    }
}

/// Writes and deletes a file as large as the data of a typical turn.
fn write_probe(file: &Path) -> io::Result<()> {
    let mut opened = File::create(file)?;
    let written = opened.write_all(&[0; PROBE_BYTES]).and_then(|()| opened.sync_data());
    drop(opened);
    std::fs::remove_file(file)?;
    written
}

/// Writes a long row that is rolled back, which shows whether the file can grow, and a row that
/// is kept, which shows whether it can be written at all.
fn probe_database(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("SAVEPOINT pulse")?;
    let row = "INSERT OR REPLACE INTO preferences (space, name, value)
        VALUES ('pulse', '', CAST(zeroblob(?1) AS TEXT))";
    db.execute(row, [PROBE_BYTES as i64])?;
    db.execute_batch("ROLLBACK TO pulse; RELEASE pulse; UPDATE meta SET epoch = epoch;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quintet_kernel::port::StorageHealth as _;

    async fn tried(store: &SqliteStore) -> Health {
        store.try_writing(CheckGuard(Arc::clone(&store.write_health))).await
    }

    #[tokio::test]
    async fn a_database_that_cannot_grow_is_detected() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&home.path().join("a.db")).unwrap();
        store.check().await.unwrap();
        let full = |db: &Connection| {
            let pages: u32 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
        };
        store.writer.change(store.epoch, full).await.unwrap();
        tried(&store).await.unwrap_err();
        store.write_health.note(tried(&store).await);
        store.check().await.unwrap_err();
        let room =
            |db: &Connection| db.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()));
        store.writer.change(store.epoch, room).await.unwrap();
        tried(&store).await.unwrap();
        assert!(!store.write_health.file.exists());
    }

    #[tokio::test]
    async fn a_probe_that_cannot_be_written_is_detected() {
        let home = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&home.path().join("a.db")).unwrap();
        tried(&store).await.unwrap();
        std::fs::create_dir(&store.write_health.file).unwrap();
        tried(&store).await.unwrap_err();
    }

    #[test]
    fn a_recent_result_is_reused() {
        let (write_health, now) = (Arc::new(WriteHealth::of(Path::new("a.db"))), Instant::now());
        let known = |at| write_health.known(at).ok().map(|health| health.is_ok());
        assert_eq!(known(now), None);
        write_health.note_at(now, Err(StorageError::Unavailable("full".into())));
        assert_eq!(known(now), Some(false));
        assert_eq!(known(now + UNHEALTHY_TTL), None);
        write_health.note_at(now, Ok(()));
        assert_eq!(known(now + UNHEALTHY_TTL), Some(true));
        assert_eq!(known(now + HEALTHY_TTL), None);
    }

    #[test]
    fn concurrent_checks_share_one_probe() {
        let (write_health, now) = (Arc::new(WriteHealth::of(Path::new("a.db"))), Instant::now());
        let trying = write_health.known(now).err();
        assert!(trying.is_some());
        assert!(write_health.known(now + HEALTHY_TTL).is_ok_and(|health| health.is_ok()));
        write_health
            .note_at(now, Err(StorageError::Unavailable("the disk does not answer".into())));
        assert!(write_health.known(now + HEALTHY_TTL).is_ok_and(|health| health.is_err()));
        drop(trying);
        assert!(write_health.known(now + HEALTHY_TTL).is_err());
    }
}
