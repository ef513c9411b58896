//! Appends an entry to a file, whole or not at all.

use std::fs::File;
use std::io::{self, Write};

use quintet_kernel::memory::MemoryError;

use crate::confined_fs::{Root, content, open_error, storage_error};
use crate::paths::FOLDER;
use crate::pending_append::{Addition, PendingAppend};

/// Maximum length of an entry, in bytes.
pub(crate) const ENTRY_BYTES_LIMIT: usize = 64 * 1024;

/// The position of an entry in its file.
#[derive(Debug)]
pub(crate) struct Appended {
    pub(crate) line_start: u64,
    pub(crate) line_end: u64,
    /// The new size of the file, in bytes.
    pub(crate) bytes: u64,
}

/// What to do with an entry that the file already contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDuplicate {
    Append,
    Skip,
}

/// Appends an entry; durable on return.
pub(crate) fn append(
    root: &Root,
    pending: &PendingAppend,
    path: &str,
    entry: &str,
    on_duplicate: OnDuplicate,
) -> Result<Appended, MemoryError> {
    let folder = root.locked(FOLDER)?;
    pending.repair_locked(root)?;
    let file = root.appendable(path)?;
    let before = content(&file, path)?;
    if let Some(at) = find(&before, entry).filter(|_| on_duplicate == OnDuplicate::Skip) {
        return Ok(appended(&before, at, entry, before.len()));
    }
    let separator = separator(&before);
    let addition = Addition {
        path: path.to_owned(),
        offset: before.len() as u64,
        text: format!("{separator}{entry}\n"),
    };
    pending.record(&addition)?;
    let added = add(&file, &addition);
    pending.clear();
    added.map_err(|error| storage_error(path, &error))?;
    rustix::fs::fsync(&folder.0).map_err(|errno| open_error(errno, FOLDER))?;
    let mut whole = before;
    whole.extend_from_slice(addition.text.as_bytes());
    let at = whole.len() - entry.len() - 1;
    Ok(appended(&whole, at, entry, whole.len()))
}

/// The text of an entry without surrounding blank lines.
pub(crate) fn entry(content: &str) -> Result<String, MemoryError> {
    let entry = content.replace("\r\n", "\n").replace('\r', "\n");
    let entry = entry.trim_matches('\n').trim_end();
    if entry.trim().is_empty() {
        return Err(MemoryError::BadEntry("it is empty"));
    }
    if entry.contains('\0') {
        return Err(MemoryError::BadEntry("it has a NUL in it"));
    }
    if entry.len() > ENTRY_BYTES_LIMIT {
        let (what, bytes, most) =
            ("the entry".into(), entry.len() as u64, ENTRY_BYTES_LIMIT as u64);
        return Err(MemoryError::TooLarge { what, bytes, most });
    }
    Ok(entry.to_owned())
}

fn add(mut file: &File, addition: &Addition) -> io::Result<()> {
    let added = file.write_all(addition.text.as_bytes()).and_then(|()| file.sync_all());
    if added.is_err() {
        // The disk may be full; a partial entry would be worse than none.
        let _worse = file.set_len(addition.offset);
    }
    added
}

/// The separator between two entries: an empty line.
fn separator(before: &[u8]) -> &'static str {
    match before {
        [] => "",
        [.., b'\n', b'\n'] | [b'\n'] => "",
        [.., b'\n'] => "\n",
        _ => "\n\n",
    }
}

/// The offset of an entry that occupies whole lines.
fn find(text: &[u8], entry: &str) -> Option<usize> {
    let text = std::str::from_utf8(text).ok()?;
    let alone = |at: &usize| {
        let (before, after) = (&text[..*at], &text[*at + entry.len()..]);
        (before.is_empty() || before.ends_with('\n'))
            && (after.is_empty() || after.starts_with('\n'))
    };
    text.match_indices(entry).map(|(at, _)| at).find(alone)
}

fn appended(text: &[u8], at: usize, entry: &str, bytes: usize) -> Appended {
    let line_start = text[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let line_end = line_start + entry.matches('\n').count() as u64;
    Appended { line_start, line_end, bytes: bytes as u64 }
}
