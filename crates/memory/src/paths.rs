//! The paths of memory files, and the kind of note in each.

use quintet_kernel::Time;
use quintet_kernel::memory::{MemoryError, MemoryFile};

/// The folder of memory files.
pub const FOLDER: &str = "memory";

/// The folder of expired daily notes.
pub(crate) const ARCHIVE: &str = "memory/archive";

/// The long-term notes.
pub(crate) const LONG_TERM: &str = "memory/MEMORY.md";

/// A file of this name at the top level also belongs to memory; only people write to it.
pub(crate) const TOP_LEVEL_FILE: &str = "MEMORY.md";

/// The file that an entry is appended to.
pub(crate) fn file_to_write(target: MemoryFile, now: Time) -> String {
    match target {
        MemoryFile::LongTerm => LONG_TERM.to_owned(),
        MemoryFile::Daily => daily_file(&now.day()),
    }
}

/// The file with the notes of a day.
pub(crate) fn daily_file(day: &str) -> String {
    format!("{FOLDER}/{day}.md")
}

/// The day of a daily file; `None` for other files.
pub(crate) fn day_of(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let day = name.strip_suffix(".md")?;
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    (day.len() == 10 && day.bytes().enumerate().all(fits)).then_some(day)
}

/// The kind of note in a file: notes that belong to no day are long-term.
pub(crate) fn kind(path: &str) -> MemoryFile {
    match day_of(path) {
        Some(_) => MemoryFile::Daily,
        None => MemoryFile::LongTerm,
    }
}

/// Checks a path from outside. Fails if it is not a path of memory.
pub(crate) fn checked(path: &str) -> Result<String, MemoryError> {
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let plain = |part: &&str| !part.is_empty() && **part != *".." && !part.contains('\0');
    let known = match &parts[..] {
        [name] => *name == TOP_LEVEL_FILE,
        [FOLDER, .., name] => is_note(name),
        _ => false,
    };
    if known && parts.iter().all(plain) {
        Ok(parts.join("/"))
    } else {
        Err(MemoryError::Outside(path.to_owned()))
    }
}

/// True if a file name in the folder is that of a note.
pub(crate) fn is_note(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_its_own_file() {
        assert_eq!(file_to_write(MemoryFile::Daily, Time::from_micros(0)), "memory/1970-01-01.md");
        assert_eq!(day_of("memory/2025-01-31.md"), Some("2025-01-31"));
        for other in ["memory/2025-1-31.md", "memory/2025-01-31.txt", "memory/MEMORY.md", ""] {
            assert_eq!(day_of(other), None, "{other}");
        }
    }

    #[test]
    fn only_paths_of_memory_are_accepted() {
        let cases = [
            ("memory/MEMORY.md", Some("memory/MEMORY.md")),
            ("./memory/./2025-01-01.md", Some("memory/2025-01-01.md")),
            ("memory/archive/2025-01-01.md", Some("memory/archive/2025-01-01.md")),
            ("MEMORY.md", Some("MEMORY.md")),
            ("memory/../secret.md", None),
            ("memory", None),
            ("memory/", None),
            ("memory/.hidden.md", None),
            ("memory/a\0.md", None),
            ("/etc/passwd", None),
            ("/memory/MEMORY.md", None),
            ("USER.md", None),
            ("", None),
        ];
        for (given, expected) in cases {
            assert_eq!(checked(given).ok().as_deref(), expected, "{given}");
        }
    }
}
