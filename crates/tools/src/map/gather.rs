//! Reads the outlines of many files side by side.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use rustix::fs::{AtFlags, FileType, fstat, statat};
use tree_sitter::Parser;

use super::cache::{Cache, Identity};
use super::outline::Outline;
use super::parse::{self, MOST_BYTES};
use crate::beneath;
use crate::blocking::Flag;

/// More threads than this would only wait for each other.
const MOST_THREADS: usize = 8;
/// So few files are read by one thread before another could start.
const FEW: usize = 16;

/// The outlines of files, in the order of the files. What cannot be read has an empty one.
pub(super) fn outlines(
    workspace: &Path,
    files: &[PathBuf],
    cache: &Cache,
    flag: &Flag,
) -> Vec<Arc<Outline>> {
    let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let pile = Pile { root, files, next: AtomicUsize::new(0), cache, flag };
    let threads = available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let threads = threads.min(files.len().div_ceil(FEW)).max(1);
    let mut read = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| pile.work())).collect();
        let mut read = pile.work();
        for other in others {
            // A thread that broke off has taken its files along; they are as good as unreadable.
            read.extend(other.join().unwrap_or_default());
        }
        read
    });
    read.sort_by_key(|(at, _)| *at);
    let mut outlines = vec![Arc::default(); files.len()];
    for (at, outline) in read {
        outlines[at] = outline;
    }
    outlines
}

/// The files that are to be read, which the threads take one after the other.
struct Pile<'a> {
    root: PathBuf,
    files: &'a [PathBuf],
    next: AtomicUsize,
    cache: &'a Cache,
    flag: &'a Flag,
}

impl Pile<'_> {
    fn work(&self) -> Vec<(usize, Arc<Outline>)> {
        let (mut parser, mut source) = (Parser::new(), Vec::new());
        let mut read = Vec::new();
        while !self.flag.is_down() {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = self.files.get(at) else { break };
            read.extend(self.one(path, &mut parser, &mut source).map(|outline| (at, outline)));
        }
        read
    }

    /// The outline of a file, from memory if the file is what it was.
    fn one(&self, path: &Path, parser: &mut Parser, source: &mut Vec<u8>) -> Option<Arc<Outline>> {
        let whole = self.root.join(path);
        // This goes by name, but nothing is read: whatever has the number of a file that was read
        // beneath the workspace is that file.
        let seen = statat(rustix::fs::CWD, &whole, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if let Some(known) = self.cache.find(&whole, Identity::from(&seen)) {
            return Some(known);
        }
        if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
            return None;
        }
        let identity = read(&self.root, path, source)?;
        let outline = Arc::new(parse::outline(parser, path, source, self.flag));
        // A parse that was broken off is not remembered.
        if !self.flag.is_down() {
            self.cache.keep(whole, identity, outline.clone());
        }
        Some(outline)
    }
}

/// Reads a file unless it is too large, in which case there is nothing in it; says which it was.
fn read(root: &Path, path: &Path, source: &mut Vec<u8>) -> Option<Identity> {
    source.clear();
    let file = beneath::open(root, path).ok()?;
    let opened = fstat(&file).ok()?;
    if u64::try_from(opened.st_size).is_ok_and(|size| size <= MOST_BYTES) {
        file.take(MOST_BYTES).read_to_end(source).ok()?;
    }
    Some(Identity::from(&opened))
}
