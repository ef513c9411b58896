//! References from events to blobs, and the deletion of unreferenced blobs.
//!
//! A reference is added and removed in the same commit as its event. A blob that loses its last
//! reference is marked as loose in that commit, and deleted at the next start if it is still
//! loose: only then is it certain that no command is about to reference the same content.

use std::path::Path;

use quintet_kernel::codec;
use quintet_kernel::event::Seq;
use quintet_kernel::id::BlobId;
use rusqlite::{Connection, params};

use super::{from_sql, to_sql};
use crate::FileBlobs;

/// Adds the references of an event.
pub(super) fn add_references<'a>(
    db: &Connection,
    session: i64,
    seq: Seq,
    blobs: impl IntoIterator<Item = &'a BlobId>,
) -> rusqlite::Result<()> {
    for blob in blobs {
        db.prepare_cached("INSERT OR IGNORE INTO refs (blob, session, seq) VALUES (?1, ?2, ?3)")?
            .execute(params![blob.as_str(), session, to_sql(seq)])?;
    }
    Ok(())
}

/// Removes the references of a session's events after a number.
pub(super) fn remove_references(db: &Connection, session: i64, after: Seq) -> rusqlite::Result<()> {
    let of_these = "SELECT DISTINCT blob FROM refs WHERE session = ?1 AND seq > ?2";
    let blobs: Vec<String> = db
        .prepare_cached(of_these)?
        .query_map([session, to_sql(after)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    db.prepare_cached("DELETE FROM refs WHERE session = ?1 AND seq > ?2")?
        .execute([session, to_sql(after)])?;
    for blob in blobs {
        db.prepare_cached(
            "INSERT OR IGNORE INTO loose (blob)
             SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM refs WHERE blob = ?1)",
        )?
        .execute([blob])?;
    }
    Ok(())
}

/// Adds references of events that were stored before references existed. Events that cannot be
/// decoded are skipped; they are reported when their session is read.
pub(super) fn backfill(db: &Connection) -> rusqlite::Result<()> {
    let mut events = db.prepare("SELECT session, seq, format, body FROM events")?;
    let mut rows = events.query([])?;
    while let Some(row) = rows.next()? {
        let (session, seq): (i64, i64) = (row.get(0)?, row.get(1)?);
        let body: Vec<u8> = row.get(3)?;
        if let Ok(event) = codec::decode(row.get(2)?, &body) {
            add_references(db, session, from_sql(seq), event.blobs())?;
        }
    }
    Ok(())
}

/// Deletes loose blobs of a directory, including those that were stored and never referenced.
/// Must run while nothing else uses the store.
pub(super) fn delete_unreferenced(
    db: &Connection,
    blobs: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let put = FileBlobs::recently_put(blobs)?;
    let noted = db.unchecked_transaction()?;
    for blob in &put {
        noted.execute("INSERT OR IGNORE INTO loose (blob) VALUES (?1)", [blob.as_str()])?;
    }
    noted.commit()?;
    FileBlobs::clear_recently_put(blobs)?;
    Ok(delete_loose_blobs(db, blobs)?)
}

fn delete_loose_blobs(db: &Connection, blobs: &Path) -> rusqlite::Result<()> {
    let query = "SELECT blob, EXISTS (SELECT 1 FROM refs WHERE refs.blob = loose.blob) FROM loose";
    let loose: Vec<(String, bool)> = db
        .prepare(query)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let cleared = db.unchecked_transaction()?;
    for (blob, needed) in loose {
        if !needed && let Err(error) = FileBlobs::delete(blobs, &blob) {
            tracing::warn!(%blob, %error, "could not delete an unreferenced blob");
            continue;
        }
        cleared.execute("DELETE FROM loose WHERE blob = ?1", [blob])?;
    }
    cleared.commit()
}
