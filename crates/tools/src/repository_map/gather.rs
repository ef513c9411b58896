//! Reads many files side by side.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use rustix::fs::{AtFlags, CWD, FileType, fstat, statat};
use tree_sitter::Parser;

use super::cache::{Cache, FileVersion, Reading};
use super::outline::Outline;
use super::parse;
use super::skim::Skim;
use crate::blocking::CancelFlag;
use crate::confined_fs;

/// The largest file that is read.
const MOST_BYTES: u64 = 1024 * 1024;
/// More threads than this would only wait for each other.
const THREADS_LIMIT: usize = 8;
/// So few files are read by one thread before another could start.
const FILES_PER_THREAD: usize = 16;

/// A workspace in which files are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) root: &'a Path,
    pub(super) cache: &'a Cache,
    pub(super) flag: &'a CancelFlag,
}

/// What a thread works with.
struct Hands {
    parser: Parser,
    source: Vec<u8>,
}

impl Field<'_> {
    /// Skims files, in their order. What cannot be read has nothing in it.
    pub(super) fn skims(&self, files: &[PathBuf]) -> Vec<Arc<Skim>> {
        self.each(files.len(), |at, hands| self.read(&files[at], hands, parse::skim))
    }

    /// Parses those of the files, in the order in which they are named.
    pub(super) fn outlines(&self, files: &[PathBuf], which: &[usize]) -> Vec<Arc<Outline>> {
        self.each(which.len(), |at, hands| self.read(&files[which[at]], hands, parse::outline))
    }

    /// Runs `work` for each number below `times`, on several threads, and returns the results in order.
    fn each<T: Default + Clone + Send>(
        &self,
        times: usize,
        work: impl Fn(usize, &mut Hands) -> Option<T> + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let share = || {
            let mut hands = Hands { parser: Parser::new(), source: Vec::new() };
            let mut done = Vec::new();
            while !self.flag.is_cancelled() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= times {
                    break;
                }
                done.extend(work(at, &mut hands).map(|result| (at, result)));
            }
            done
        };
        let threads = available_parallelism().map_or(1, usize::from).min(THREADS_LIMIT);
        let threads = threads.min(times.div_ceil(FILES_PER_THREAD));
        let mut results = vec![T::default(); times];
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
            let mut done = share();
            // The results of a thread that panicked are lost.
            done.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
            for (at, result) in done {
                results[at] = result;
            }
        });
        results
    }

    /// The reading of a file, from the cache if the file has not changed.
    fn read<T: Reading>(
        &self,
        path: &Path,
        hands: &mut Hands,
        read: impl Fn(&mut Parser, &Path, &[u8], &CancelFlag) -> T,
    ) -> Option<Arc<T>> {
        let whole = self.root.join(path);
        // This goes by name, but nothing is read: whatever has the number of a file that was read
        // beneath the workspace is that file.
        let seen = statat(CWD, &whole, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if let Some(known) = self.cache.find(&whole, FileVersion::from(&seen)) {
            return Some(known);
        }
        if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
            return None;
        }
        let identity = fill(self.root, path, &mut hands.source)?;
        let reading = Arc::new(read(&mut hands.parser, path, &hands.source, self.flag));
        // What was broken off is not remembered.
        if !self.flag.is_cancelled() {
            self.cache.keep(whole, identity, reading.clone());
        }
        Some(reading)
    }
}

/// Reads a file, or nothing if it is too large; returns its version.
fn fill(root: &Path, path: &Path, source: &mut Vec<u8>) -> Option<FileVersion> {
    source.clear();
    let file = confined_fs::open(root, path).ok()?;
    let opened = fstat(&file).ok()?;
    if u64::try_from(opened.st_size).is_ok_and(|size| size <= MOST_BYTES) {
        file.take(MOST_BYTES).read_to_end(source).ok()?;
    }
    Some(FileVersion::from(&opened))
}
