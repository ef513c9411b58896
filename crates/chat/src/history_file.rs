//! Stores the input history in a private file, one line of JSON per entry.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::model::HISTORY_LIMIT;

/// The stored entries, newest last. A file that cannot be read counts as empty.
pub(crate) fn read(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<String> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let kept = lines[lines.len().saturating_sub(HISTORY_LIMIT)..].to_vec();
    if lines.len() > 2 * HISTORY_LIMIT {
        // Shortened now and then; a failure only leaves the file long.
        let _ = replace(file, &kept);
    }
    kept
}

/// Appends entries. Fails if the file cannot be written.
pub(crate) fn append(file: &Path, lines: &[String]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    file.write_all(&encoded(lines))
}

fn replace(file: &Path, lines: &[String]) -> io::Result<()> {
    let beside = file.with_extension("new");
    let mut new =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    new.write_all(&encoded(lines))?;
    std::fs::rename(beside, file)
}

fn encoded(lines: &[String]) -> Vec<u8> {
    let line = |line: &String| format!("{}\n", serde_json::Value::from(line.as_str()));
    lines.iter().map(line).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_history_is_stored_in_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/history");
        assert_eq!(read(&file), Vec::<String>::new());
        append(&file, &["one".into(), "two\nlines".into()]).unwrap();
        append(&file, &["three".into()]).unwrap();
        assert_eq!(read(&file), ["one", "two\nlines", "three"]);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_long_file_is_shortened_and_invalid_lines_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history");
        let lines: Vec<String> = (0..2 * HISTORY_LIMIT + 1).map(|n| n.to_string()).collect();
        append(&file, &lines).unwrap();
        assert_eq!(read(&file).last(), lines.last());
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), HISTORY_LIMIT);
        std::fs::write(&file, "no json\n\"good\"\n").unwrap();
        assert_eq!(read(&file), ["good"]);
    }
}
