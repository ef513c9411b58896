//! Reads lines of a memory file.

use quintet_kernel::memory::{LineRange, MemoryError, Passage};

use crate::confined_fs::Root;
use crate::paths;

/// Maximum number of bytes that one call returns.
const READ_BYTES_LIMIT: usize = 256 * 1024;

/// Reads lines of a memory file. Fails if it does not exist or the lines exceed [`READ_BYTES_LIMIT`].
pub(crate) fn read(root: &Root, path: &str, lines: LineRange) -> Result<Passage, MemoryError> {
    let path = paths::checked(path)?;
    let content = root.read(&path)?.ok_or_else(|| MemoryError::NotFound(path.clone()))?;
    let text = String::from_utf8_lossy(&content);
    let all: Vec<&str> = text.lines().collect();
    let count = all.len() as u64;
    let first = lines.first.max(1);
    let last = lines.last.unwrap_or(count).min(count);
    let wanted = all.get(index(first)..index(last + 1)).unwrap_or_default();
    let text = wanted.join("\n");
    if text.len() > READ_BYTES_LIMIT {
        let what = format!("{path}, lines {first} to {last},");
        return Err(MemoryError::TooLarge {
            what,
            bytes: text.len() as u64,
            most: READ_BYTES_LIMIT as u64,
        });
    }
    let line_end = (first + wanted.len() as u64).saturating_sub(1);
    Ok(Passage { path, text, line_start: first, line_end, lines: count })
}

fn index(line: u64) -> usize {
    usize::try_from(line - 1).unwrap_or(usize::MAX)
}
