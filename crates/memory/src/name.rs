//! Which files are memory, and what each is for.

use quintet_kernel::Time;
use quintet_kernel::memory::{Error, Target};

/// The folder that memory is in.
pub const FOLDER: &str = "memory";

/// Where daily notes go that are no longer kept.
pub(crate) const ARCHIVE: &str = "memory/archive";

/// What should stay known.
pub(crate) const LONG_TERM: &str = "memory/MEMORY.md";

/// A file of this name at the top is memory as well; only people write to it.
pub(crate) const AT_TOP: &str = "MEMORY.md";

/// The file that is written to.
pub(crate) fn written(target: Target, now: Time) -> String {
    match target {
        Target::LongTerm => LONG_TERM.to_owned(),
        Target::Daily => of_day(&now.day()),
    }
}

/// The notes of a day.
pub(crate) fn of_day(day: &str) -> String {
    format!("{FOLDER}/{day}.md")
}

/// The day whose notes a file holds; nothing if it is another kind of file.
pub(crate) fn day(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let day = name.strip_suffix(".md")?;
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    (day.len() == 10 && day.bytes().enumerate().all(fits)).then_some(day)
}

/// What a file is for: whatever does not belong to a day should stay known.
pub(crate) fn kind(path: &str) -> Target {
    match day(path) {
        Some(_) => Target::Daily,
        None => Target::LongTerm,
    }
}

/// A path that somebody names, as a path of memory.
pub(crate) fn checked(path: &str) -> Result<String, Error> {
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    let plain = |part: &&str| !part.is_empty() && **part != *".." && !part.contains('\0');
    let known = match &parts[..] {
        [name] => *name == AT_TOP,
        [FOLDER, .., name] => is_note(name),
        _ => false,
    };
    match known && parts.iter().all(plain) {
        true => Ok(parts.join("/")),
        false => Err(Error::Outside(path.to_owned())),
    }
}

/// Whether a name in the folder is that of a note.
pub(crate) fn is_note(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_a_file_of_its_own() {
        assert_eq!(written(Target::Daily, Time::from_micros(0)), "memory/1970-01-01.md");
        assert_eq!(day("memory/2025-01-31.md"), Some("2025-01-31"));
        for other in ["memory/2025-1-31.md", "memory/2025-01-31.txt", "memory/MEMORY.md", ""] {
            assert_eq!(day(other), None, "{other}");
        }
    }

    #[test]
    fn only_paths_of_memory_can_be_named() {
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
