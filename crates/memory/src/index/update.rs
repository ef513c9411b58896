//! Updates the index with changed files.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use quintet_kernel::Time;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use rustix::fs::{AtFlags, FileType, statat};
use sha2::{Digest, Sha256};

use crate::confined_fs::Root;
use crate::passages::{self, Passage};
use crate::paths::{self, FOLDER, TOP_LEVEL_FILE};
use crate::{retention, vectors, words};

/// A file that changed within this time may change again without a new fingerprint.
const SETTLE_INTERVAL: Duration = Duration::from_secs(2);

/// A file as the index knows it.
struct KnownFile {
    fingerprint: String,
    digest: Vec<u8>,
}

/// Vectors by the digests of the texts they were computed from.
type Vectors = HashMap<Vec<u8>, Vec<u8>>;

/// The files of memory and their fingerprints (size and dates); `None` for a file that changed a moment ago.
pub(crate) type Fingerprints = BTreeMap<String, Option<String>>;

/// Computes the fingerprints of the files without opening them.
pub(crate) fn scan(
    root: &Root,
    now: Time,
) -> Result<Fingerprints, quintet_kernel::memory::MemoryError> {
    let mut fingerprints = Fingerprints::new();
    if let Some(top) = root.folder(".")? {
        fingerprints.extend(
            fingerprint(&top, TOP_LEVEL_FILE, now)
                .map(|fingerprint| (TOP_LEVEL_FILE.to_owned(), fingerprint)),
        );
    }
    if let Some(folder) = root.folder(FOLDER)? {
        for name in retention::names(&folder)? {
            let found = fingerprint(&folder, &name, now);
            fingerprints.extend(found.map(|fingerprint| (format!("{FOLDER}/{name}"), fingerprint)));
        }
    }
    Ok(fingerprints)
}

/// The fingerprint of a regular file.
fn fingerprint(folder: &std::os::fd::OwnedFd, name: &str, now: Time) -> Option<Option<String>> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    let changed = Time::from_micros(found.st_ctime.saturating_mul(1_000_000));
    let settled = changed < now.before(SETTLE_INTERVAL);
    let at = (found.st_mtime, found.st_mtime_nsec, found.st_ctime, found.st_ctime_nsec);
    Some(settled.then(|| format!("{} {} {at:?}", found.st_ino, found.st_size)))
}

/// Indexes the files that changed.
pub(crate) fn update(
    db: &mut Connection,
    root: &Root,
    fingerprints: &Fingerprints,
) -> rusqlite::Result<()> {
    let known_files = known_files(db)?;
    let same = |path: &String, fingerprint: &Option<String>| {
        known_files.get(path).is_some_and(|known| fingerprint.as_ref() == Some(&known.fingerprint))
    };
    let changed: Vec<_> =
        fingerprints.iter().filter(|(path, fingerprint)| !same(path, fingerprint)).collect();
    let gone: Vec<_> =
        known_files.keys().filter(|path| !fingerprints.contains_key(*path)).collect();
    if changed.is_empty() && gone.is_empty() {
        return Ok(());
    }
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for path in gone {
        remove_file(&change, path)?;
    }
    for (path, fingerprint) in changed {
        let fingerprint = fingerprint.as_deref().unwrap_or_default();
        index_file(&change, root, path, fingerprint, known_files.get(path))?;
    }
    change.commit()
}

fn known_files(db: &Connection) -> rusqlite::Result<HashMap<String, KnownFile>> {
    let mut files = db.prepare("SELECT path, print, digest FROM files")?;
    let known_files = files.query_map([], |row| {
        Ok((row.get(0)?, KnownFile { fingerprint: row.get(1)?, digest: row.get(2)? }))
    })?;
    known_files.collect()
}

fn remove_file(change: &Transaction<'_>, path: &str) -> rusqlite::Result<()> {
    let of_file = "SELECT id FROM passages WHERE path = ?1";
    change.execute(&format!("DELETE FROM words WHERE rowid IN ({of_file})"), [path])?;
    vectors::delete(change, of_file, path)?;
    change.execute("DELETE FROM passages WHERE path = ?1", [path])?;
    change.execute("DELETE FROM files WHERE path = ?1", [path])?;
    Ok(())
}

fn index_file(
    change: &Transaction<'_>,
    root: &Root,
    path: &str,
    fingerprint: &str,
    known: Option<&KnownFile>,
) -> rusqlite::Result<()> {
    let content = match root.read(path) {
        Ok(content) => content.unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "could not read a memory file; it is left out of the search");
            return remove_file(change, path);
        }
    };
    let digest = Sha256::digest(&content).to_vec();
    if known.is_none_or(|known| known.digest != digest) {
        let vectors = vectors_of(change, path)?;
        remove_file(change, path)?;
        insert(change, path, &String::from_utf8_lossy(&content), &vectors)?;
    }
    let row = params![path, fingerprint, digest];
    change.execute("INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3)", row)?;
    Ok(())
}

/// The vectors of a file by the digests of their passages; unchanged passages keep theirs.
fn vectors_of(change: &Transaction<'_>, path: &str) -> rusqlite::Result<Vectors> {
    let mut vectors = change.prepare_cached(
        "SELECT digest, vector FROM passages JOIN vectors USING (id) WHERE path = ?1",
    )?;
    vectors.query_map([path], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn insert(
    change: &Transaction<'_>,
    path: &str,
    text: &str,
    vectors: &Vectors,
) -> rusqlite::Result<()> {
    let mut passage = change.prepare_cached(
        "INSERT INTO passages (path, kind, day, line_start, line_end, text, headings, digest)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let mut body =
        change.prepare_cached("INSERT INTO words (rowid, body, headings) VALUES (?1, ?2, ?3)")?;
    // Long-term notes rank as if they were newest.
    let (kind, day) = (paths::kind(path).name(), paths::day_of(path).unwrap_or("9999"));
    for Passage { line_start, line_end, text, headings } in passages::split(text) {
        let (first, last) = (line_start as i64, line_end as i64);
        let digest = digest(&text_to_embed(&headings, text));
        let row = params![path, kind, day, first, last, text, headings, digest];
        let id = passage.insert(row)?;
        body.insert(params![id, words::spaced(text), words::spaced(&headings)])?;
        match vectors.get(&digest) {
            Some(vector) => vectors::put(change, id, vector)?,
            None => vectors::add_pending(change, id)?,
        }
    }
    Ok(())
}

/// The text of a passage that is embedded: its headings and itself.
pub(crate) fn text_to_embed(headings: &str, text: &str) -> String {
    format!("{headings}\n{text}").trim().to_owned()
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text)[..16].to_vec()
}
