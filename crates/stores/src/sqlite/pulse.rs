//! Whether the database can be written to: known from what was written last, or tried.
//!
//! Every commit of the journal counts. Where none is recent, a little is written on purpose: a file
//! of its own beside the database, because a full disk may still have room in the database's files,
//! and then through the writer, because only it knows what the database says.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::port::{self, BoxFuture, StorageError};
use rusqlite::Connection;
use tokio::time::{Instant, timeout};

use super::Store;

/// For how long good news is good, and bad news bad.
const GOOD: Duration = Duration::from_secs(3);
const BAD: Duration = Duration::from_secs(1);
/// How long the disk may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How much room there must be.
const ROOM: usize = 64 * 1024;

type Beat = Result<(), StorageError>;

/// What became of the last try to write.
#[derive(Debug)]
pub(super) struct Pulse {
    /// The file that is written on purpose.
    file: PathBuf,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    beat: Option<(Instant, Beat)>,
    /// Whether somebody is finding out. One is enough: a disk that hangs holds a thread for each.
    trying: bool,
}

/// A write attempt under way, until this is dropped.
struct Try(Arc<Pulse>);

impl Drop for Try {
    fn drop(&mut self) {
        self.0.last().trying = false;
    }
}

impl Pulse {
    /// Of the database at a path.
    pub(super) fn of(database: &Path) -> Self {
        Self { file: database.with_extension("pulse"), last: Mutex::default() }
    }

    /// Something was written, or could not be.
    pub(super) fn note(&self, beat: Beat) {
        self.note_at(Instant::now(), beat);
    }

    fn note_at(&self, now: Instant, beat: Beat) {
        self.last().beat = Some((now, beat));
    }

    /// What is known, unless that is long ago. Then whoever asks is to find out, and others that ask
    /// meanwhile are told what was known before.
    fn known(self: &Arc<Self>, now: Instant) -> Result<Beat, Try> {
        let mut last = self.last();
        match &last.beat {
            Some((at, beat)) if now < *at + if beat.is_ok() { GOOD } else { BAD } => {
                Ok(beat.clone())
            }
            beat if last.trying => Ok(beat.clone().map_or(Ok(()), |(_, beat)| beat)),
            _ => {
                last.trying = true;
                Err(Try(Arc::clone(self)))
            }
        }
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl port::Pulse for Store {
    fn beat(&self) -> BoxFuture<'_, Beat> {
        Box::pin(async {
            let trying = match self.pulse.known(Instant::now()) {
                Ok(known) => return known,
                Err(trying) => trying,
            };
            let beat =
                timeout(WRITE_TIMEOUT, self.try_writing(trying)).await.unwrap_or_else(|_| {
                    Err(StorageError::Unavailable("the disk does not answer".into()))
                });
            self.pulse.note(beat.clone());
            beat
        })
    }
}

impl Store {
    /// The try is over only when the disk has answered, whether or not anybody still waits.
    async fn try_writing(&self, trying: Try) -> Beat {
        let file = self.pulse.file.clone();
        let written = tokio::task::spawn_blocking(move || (take_room(&file), trying)).await;
        let unavailable = |why: String| StorageError::Unavailable(why);
        let (written, _trying) =
            written.map_err(|_| unavailable("the disk cannot be tried".into()))?;
        written.map_err(|error| unavailable(error.to_string()))?;
        self.writer.change(self.epoch, touch).await
    }
}

/// Writes as much as an ordinary turn might, and takes it back.
fn take_room(file: &Path) -> io::Result<()> {
    let mut opened = File::create(file)?;
    let written = opened.write_all(&[0; ROOM]).and_then(|()| opened.sync_data());
    drop(opened);
    std::fs::remove_file(file)?;
    written
}

/// A long row that nobody keeps shows whether there may be more pages; the row that is written anew
/// shows whether any can be written.
fn touch(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("SAVEPOINT pulse")?;
    let row = "INSERT OR REPLACE INTO preferences (space, name, value)
        VALUES ('pulse', '', CAST(zeroblob(?1) AS TEXT))";
    db.execute(row, [ROOM as i64])?;
    db.execute_batch("ROLLBACK TO pulse; RELEASE pulse; UPDATE meta SET epoch = epoch;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quintet_kernel::port::Pulse as _;

    async fn tried(store: &Store) -> Beat {
        store.try_writing(Try(Arc::clone(&store.pulse))).await
    }

    #[tokio::test]
    async fn a_database_that_may_not_grow_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.db")).unwrap();
        store.beat().await.unwrap();
        let full = |db: &Connection| {
            let pages: u32 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
        };
        store.writer.change(store.epoch, full).await.unwrap();
        tried(&store).await.unwrap_err();
        store.pulse.note(tried(&store).await);
        store.beat().await.unwrap_err();
        let room =
            |db: &Connection| db.query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(()));
        store.writer.change(store.epoch, room).await.unwrap();
        tried(&store).await.unwrap();
        assert!(!store.pulse.file.exists());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_made_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(&home.path().join("a.db")).unwrap();
        tried(&store).await.unwrap();
        std::fs::create_dir(&store.pulse.file).unwrap();
        tried(&store).await.unwrap_err();
    }

    #[test]
    fn what_is_known_is_not_tried_again_at_once() {
        let (pulse, now) = (Arc::new(Pulse::of(Path::new("a.db"))), Instant::now());
        let known = |at| pulse.known(at).ok().map(|beat| beat.is_ok());
        assert_eq!(known(now), None);
        pulse.note_at(now, Err(StorageError::Unavailable("full".into())));
        assert_eq!(known(now), Some(false));
        assert_eq!(known(now + BAD), None);
        pulse.note_at(now, Ok(()));
        assert_eq!(known(now + BAD), Some(true));
        assert_eq!(known(now + GOOD), None);
    }

    #[test]
    fn one_finds_out_for_all_however_long_it_takes() {
        let (pulse, now) = (Arc::new(Pulse::of(Path::new("a.db"))), Instant::now());
        let trying = pulse.known(now).err();
        assert!(trying.is_some());
        assert!(pulse.known(now + GOOD).is_ok_and(|beat| beat.is_ok()));
        pulse.note_at(now, Err(StorageError::Unavailable("the disk does not answer".into())));
        assert!(pulse.known(now + GOOD).is_ok_and(|beat| beat.is_err()));
        drop(trying);
        assert!(pulse.known(now + GOOD).is_err());
    }
}
