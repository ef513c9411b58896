//! The log of a call's record: a line of JSON for everything that was noted, in order.
//!
//! A line is written whole before the call that it is about goes on, so it survives the death of
//! whoever writes it, though not of the machine. Whoever writes holds a lock for as long as it lives.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use quintet_kernel::change::{Gap, Shape};
use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use serde::{Deserialize, Serialize};

use crate::spelling;

const NAME: &str = "log";

/// A file by its device and number.
pub(super) type Identity = (u64, u64);

/// One thing that was noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Line {
    /// What was at a path, from the workspace on; nothing if that is nothing. The first counts, but
    /// what was in it may be said later.
    Was(#[serde(with = "spelling")] PathBuf, Option<Was>),
    /// A folder got another path, with all that is in it.
    Moved(#[serde(with = "spelling")] PathBuf, #[serde(with = "spelling")] PathBuf),
    /// Something is not recorded.
    Gap(Gap),
    /// The command is over, and all that it did was noted.
    Done,
}

/// What was at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Was {
    pub(super) shape: Shape,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) identity: Identity,
    pub(super) content: Kept,
}

/// Where what was in it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kept {
    /// Still in it, wherever it is now.
    There,
    /// In a copy with this number.
    Copy(u64),
    /// Here: where a link leads.
    Target(Vec<u8>),
    /// Nowhere: it could not be copied, or there is nothing in its like.
    Nowhere,
}

/// Writes the log.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    folder: PathBuf,
    next: u64,
}

/// All that was noted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// What was at each path, in the order in which they came.
    pub(super) paths: Vec<(PathBuf, Option<Was>)>,
    pub(super) moves: Vec<(PathBuf, PathBuf)>,
    pub(super) gaps: Vec<Gap>,
    /// Whether all that was done was noted.
    pub(super) done: bool,
}

impl Log {
    /// Opens the log in a folder; gives what was noted in it before.
    pub(super) fn open(folder: &Path) -> io::Result<(Self, Noted)> {
        let file = self::open(folder)?;
        retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))?;
        let noted = parse(&fs::read(folder.join(NAME))?);
        let next = fs::read_dir(folder)?.count() as u64;
        Ok((Self { file, folder: folder.to_owned(), next }, noted))
    }

    /// Notes something.
    pub(super) fn note(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)
    }

    /// A new file for a copy, and its number.
    pub(super) fn copy(&mut self) -> io::Result<(u64, File)> {
        loop {
            let number = self.next;
            self.next += 1;
            let path = self::copy(&self.folder, number);
            match File::options().write(true).create_new(true).mode(0o600).open(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok((number, made?)),
            }
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Where a copy is.
pub(super) fn copy(folder: &Path, number: u64) -> PathBuf {
    folder.join(number.to_string())
}

/// Makes an empty log unless there is one.
pub(super) fn create(folder: &Path) -> io::Result<()> {
    open(folder).map(drop)
}

fn open(folder: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(folder.join(NAME))
}

/// Reads a log, once nobody writes to it any more. There is none if no command was run.
pub(super) fn read(folder: &Path) -> io::Result<Noted> {
    let file = match File::open(folder.join(NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Noted { done: true, ..Noted::default() });
        }
        opened => opened?,
    };
    retry_on_intr(|| flock(&file, FlockOperation::LockShared))?;
    Ok(parse(&fs::read(folder.join(NAME))?))
}

/// Whether nobody writes to a log any more, and it is whole.
pub(super) fn is_done(folder: &Path) -> bool {
    let Ok(file) = File::open(folder.join(NAME)) else { return false };
    let free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    free && fs::read(folder.join(NAME)).is_ok_and(|text| parse(&text).done)
}

/// Half a line at the end is about a call that never went on.
fn parse(text: &[u8]) -> Noted {
    let (mut noted, mut at) = (Noted::default(), HashMap::new());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice(line) else { continue };
        noted.done = line == Line::Done;
        match line {
            Line::Was(path, was) => noted.add(&mut at, path, was),
            Line::Moved(from, to) => noted.moves.push((from, to)),
            Line::Gap(gap) => noted.gaps.push(gap),
            Line::Done => {}
        }
    }
    noted
}

impl Noted {
    fn add(&mut self, at: &mut HashMap<PathBuf, usize>, path: PathBuf, was: Option<Was>) {
        let Some(first) = at.get(&path) else {
            at.insert(path.clone(), self.paths.len());
            self.paths.push((path, was));
            return;
        };
        if let (Some(first), Some(was)) = (&mut self.paths[*first].1, was)
            && first.content == Kept::There
        {
            first.content = was.content;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn was(size: u64, content: Kept) -> Option<Was> {
        Some(Was { shape: Shape::File, mode: 0o644, size, identity: (1, 2), content })
    }

    #[test]
    fn the_first_state_counts_and_its_content_may_follow() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, noted) = Log::open(dir.path()).unwrap();
        assert_eq!(noted, Noted::default());
        let path = |name: &str| PathBuf::from(name);
        for line in [
            Line::Was(path("a"), was(3, Kept::There)),
            Line::Was(path("b"), None),
            Line::Was(path("a"), was(9, Kept::Copy(4))),
            Line::Was(path("b"), was(9, Kept::Copy(5))),
            Line::Moved(path("x"), path("y")),
            Line::Done,
        ] {
            log.note(&line).unwrap();
        }
        drop(log);
        let noted = read(dir.path()).unwrap();
        assert_eq!(noted.paths, [(path("a"), was(3, Kept::Copy(4))), (path("b"), None)]);
        assert!(noted.done);
        let (mut log, again) = Log::open(dir.path()).unwrap();
        assert_eq!(again, noted);
        log.file.write_all(b"{\"Was\":[\"c\"").unwrap();
        drop(log);
        assert_eq!(read(dir.path()).unwrap(), noted);
    }
}
