//! Brings the index up to date with the files.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use quintet_kernel::Time;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use rustix::fs::{AtFlags, FileType, statat};
use sha2::{Digest, Sha256};

use crate::beneath::Root;
use crate::name::{self, AT_TOP, FOLDER};
use crate::passages::{self, Passage};
use crate::{retention, vectors, words};

/// A file that changed so recently may change again without looking any different.
const UNSETTLED: Duration = Duration::from_secs(2);

/// What is known of a file.
struct Known {
    print: String,
    digest: Vec<u8>,
}

/// Vectors by the digests of what they were made of.
type Vectors = HashMap<Vec<u8>, Vec<u8>>;

/// The files of memory and how each looks; nothing for one that may change without looking different.
pub(crate) type Prints = BTreeMap<String, Option<String>>;

/// Looks at the files without opening them.
pub(crate) fn look(root: &Root, now: Time) -> Result<Prints, quintet_kernel::memory::Error> {
    let mut prints = Prints::new();
    if let Some(top) = root.folder(".")? {
        prints.extend(print(&top, AT_TOP, now).map(|print| (AT_TOP.to_owned(), print)));
    }
    if let Some(folder) = root.folder(FOLDER)? {
        for name in retention::names(&folder)? {
            let found = print(&folder, &name, now);
            prints.extend(found.map(|print| (format!("{FOLDER}/{name}"), print)));
        }
    }
    Ok(prints)
}

/// How a regular file looks.
fn print(folder: &std::os::fd::OwnedFd, name: &str, now: Time) -> Option<Option<String>> {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    let changed = Time::from_micros(found.st_ctime.saturating_mul(1_000_000));
    let settled = changed < now.before(UNSETTLED);
    let at = (found.st_mtime, found.st_mtime_nsec, found.st_ctime, found.st_ctime_nsec);
    Some(settled.then(|| format!("{} {} {at:?}", found.st_ino, found.st_size)))
}

/// Takes in what changed.
pub(crate) fn update(db: &mut Connection, root: &Root, prints: &Prints) -> rusqlite::Result<()> {
    let known = known(db)?;
    let same = |path: &String, print: &Option<String>| {
        known.get(path).is_some_and(|known| print.as_ref() == Some(&known.print))
    };
    let changed: Vec<_> = prints.iter().filter(|(path, print)| !same(path, print)).collect();
    let gone: Vec<_> = known.keys().filter(|path| !prints.contains_key(*path)).collect();
    if changed.is_empty() && gone.is_empty() {
        return Ok(());
    }
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for path in gone {
        forget(&change, path)?;
    }
    for (path, print) in changed {
        let print = print.as_deref().unwrap_or_default();
        take(&change, root, path, print, known.get(path))?;
    }
    change.commit()
}

fn known(db: &Connection) -> rusqlite::Result<HashMap<String, Known>> {
    let mut files = db.prepare("SELECT path, print, digest FROM files")?;
    let known = files.query_map([], |row| {
        Ok((row.get(0)?, Known { print: row.get(1)?, digest: row.get(2)? }))
    })?;
    known.collect()
}

fn forget(change: &Transaction<'_>, path: &str) -> rusqlite::Result<()> {
    let of_file = "SELECT id FROM passages WHERE path = ?1";
    change.execute(&format!("DELETE FROM words WHERE rowid IN ({of_file})"), [path])?;
    vectors::delete(change, of_file, path)?;
    change.execute("DELETE FROM passages WHERE path = ?1", [path])?;
    change.execute("DELETE FROM files WHERE path = ?1", [path])?;
    Ok(())
}

fn take(
    change: &Transaction<'_>,
    root: &Root,
    path: &str,
    print: &str,
    known: Option<&Known>,
) -> rusqlite::Result<()> {
    let content = match root.read(path) {
        Ok(content) => content.unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "a file of memory is not searched");
            return forget(change, path);
        }
    };
    let digest = Sha256::digest(&content).to_vec();
    if known.is_none_or(|known| known.digest != digest) {
        let vectors = vectors_of(change, path)?;
        forget(change, path)?;
        insert(change, path, &String::from_utf8_lossy(&content), &vectors)?;
    }
    let row = params![path, print, digest];
    change.execute("INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3)", row)?;
    Ok(())
}

/// The vectors of a file by the digests of their passages: those of passages that stay are kept.
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
    // What should stay known is as good as new.
    let (kind, day) = (name::kind(path).name(), name::day(path).unwrap_or("9999"));
    for Passage { line_start, line_end, text, headings } in passages::split(text) {
        let (first, last) = (line_start as i64, line_end as i64);
        let digest = digest(&embedded(&headings, text));
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

/// A passage as it is embedded: with what it stands under.
pub(crate) fn embedded(headings: &str, text: &str) -> String {
    format!("{headings}\n{text}").trim().to_owned()
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text)[..16].to_vec()
}
