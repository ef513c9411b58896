//! Space of the write-ahead log, allocated before it is needed.
//!
//! The sync of a file that grew waits for a commit of the file system's own journal, and on ext4 with it
//! for every other file that grew a moment before, such as the search index. A log that has its blocks is
//! synced alone. SQLite overwrites the log from its beginning after each checkpoint, so this is done once.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::open::{LOG_BYTES, beside};

/// Fills the log with zeros behind its last frame, where SQLite expects either a frame or anything else. A log
/// without this space works as well, only slower.
pub(super) fn reserve(db: &mut Connection) {
    if let Err(error) = reserve_locked(db) {
        tracing::warn!(%error, "no space was reserved for the journal's log");
    }
}

fn reserve_locked(db: &mut Connection) -> io::Result<()> {
    // Nobody may append a frame meanwhile.
    let locked = db.transaction_with_behavior(TransactionBehavior::Immediate);
    let locked = locked.map_err(io::Error::other)?;
    let path = locked.path().ok_or(io::ErrorKind::NotFound)?;
    let mut log = OpenOptions::new().write(true).open(beside(Path::new(path), "-wal"))?;
    let length = log.seek(SeekFrom::End(0))?;
    let missing = u64::from(LOG_BYTES).saturating_sub(length);
    let filled = io::copy(&mut io::repeat(0).take(missing), &mut log);
    let reserved = filled.and_then(|_| log.sync_data());
    if reserved.is_err() {
        // A disk that is nearly full keeps what little space it has.
        log.set_len(length)?;
    }
    reserved
}
