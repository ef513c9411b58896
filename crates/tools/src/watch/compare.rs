//! What became of what was noted.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use quintet_kernel::change::git::Own;
use quintet_kernel::change::{Gap, Shape};
use quintet_kernel::port::{Body, Changed, Content, Traces};
use rustix::fs::Stat;

use super::log::{Identity, Kept, Noted, Was, copy, read};
use crate::beneath::{Error, Place, shape_of};
use crate::folders::{builds, digest, same};
use crate::repository::{Repositories, says_the_same};
use crate::show;
use crate::spelling::spell;

/// What is longer is not held, but copied.
const SHORT: u64 = 256 * 1024;
/// The most paths of which one call records what became of them: a record has to be read, too.
const MOST_PATHS: usize = 200_000;
/// The most that is held of one call's files, in bytes.
const HELD: u64 = 64 * 1024 * 1024;

/// Finds out what became of everything that was noted in a folder.
pub(super) fn compare(root: &Path, folder: &Path, most: u64) -> Traces {
    let noted = match read(folder) {
        Ok(noted) => noted,
        Err(error) => {
            let reason = format!("what commands do to files could not be noted: {error}");
            return Traces { changes: Vec::new(), unrecorded: vec![gap("", &reason)] };
        }
    };
    let Noted { mut paths, moves, gaps, done } = noted;
    paths.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let more = paths.len().saturating_sub(MOST_PATHS);
    paths.truncate(MOST_PATHS);
    let (held, left, next, built) = (HELD, most, 0, HashMap::new());
    let made = paths.iter().filter(|(_, was)| was.is_none()).map(|(path, _)| &**path).collect();
    let git = Repositories::new(root);
    let mut taker = Taker { root, folder, moves, gaps, held, left, next, built, git, made };
    if more > 0 {
        let reason = format!("more than {MOST_PATHS} paths were touched at once");
        taker.gaps.push(Gap { paths: Some(more as u64), ..gap("", &reason) });
    }
    if !done {
        taker.gaps.push(gap("", "the record of a command broke off"));
    }
    let changes = paths.iter().filter_map(|(path, was)| taker.take(path, was.as_ref())).collect();
    Traces { changes, unrecorded: taker.gaps }
}

fn gap(path: &str, reason: &str) -> Gap {
    Gap { path: path.to_owned(), paths: None, reason: reason.to_owned() }
}

/// Takes down one path after the other.
struct Taker<'a> {
    root: &'a Path,
    folder: &'a Path,
    moves: Vec<(PathBuf, PathBuf)>,
    gaps: Vec<Gap>,
    /// How much may still be held.
    held: u64,
    /// How much may still be copied.
    left: u64,
    /// The number of the next copy.
    next: u64,
    /// Folders, and whether builds fill them.
    built: HashMap<PathBuf, bool>,
    git: Repositories<'a>,
    /// What was not there before.
    made: HashSet<&'a Path>,
}

impl Taker<'_> {
    fn take(&mut self, path: &Path, was: Option<&Was>) -> Option<Changed> {
        let now = match look(self.root, path) {
            Ok(now) => now,
            Err(error) => {
                self.gaps.push(gap(&show::path(path), &error.to_string()));
                return None;
            }
        };
        if self.is_same(path, was, now.as_ref()) {
            return None;
        }
        let before = was.map(|was| self.before(path, was));
        let after = now.map(|now| self.after(path, &now));
        Some(Changed { path: spell(path).into_owned(), before, after })
    }

    /// Whether nothing became of it.
    fn is_same(&self, path: &Path, was: Option<&Was>, now: Option<&Found>) -> bool {
        let (Some(was), Some(now)) = (was, now) else { return was.is_none() && now.is_none() };
        let mode = was.shape == Shape::Link || was.mode == now.mode();
        if was.shape != now.shape || !mode {
            return false;
        }
        match &was.content {
            Kept::There => was.identity == now.identity(),
            Kept::Copy(number) if self.git.own(path) == Some(Own::Index) => {
                self.stages_the_same(*number, now)
            }
            Kept::Copy(number) => {
                let kept = File::open(copy(self.folder, *number));
                was.size == now.size()
                    && kept.is_ok_and(|kept| {
                        now.place.open().is_ok_and(|now| same(kept, now).unwrap_or(false))
                    })
            }
            Kept::Target(target) => now.place.target().is_ok_and(|now| now == *target),
            Kept::Nowhere => !was.shape.has_content(),
        }
    }

    /// Git writes its index also where it only looks.
    fn stages_the_same(&self, number: u64, now: &Found) -> bool {
        let now = now.place.read().map(|now| now.bytes);
        let was = fs::read(copy(self.folder, number));
        was.is_ok_and(|was| now.is_ok_and(|now| was == now || says_the_same(&was, &now)))
    }

    fn before(&mut self, path: &Path, was: &Was) -> Content {
        let body = match &was.content {
            Kept::Copy(number) => Some(self.copied(*number, was.size)),
            Kept::Target(target) => Some(Body::Bytes(target.clone())),
            Kept::There => self.still(path, was.identity),
            Kept::Nowhere => None,
        };
        let mode = (was.shape != Shape::Link).then_some(was.mode);
        Content { body, size: was.size, mode, shape: was.shape }
    }

    /// A copy: held if it is short.
    fn copied(&mut self, number: u64, size: u64) -> Body {
        let path = copy(self.folder, number);
        if size > SHORT || size > self.held {
            return Body::File(path);
        }
        self.held -= size;
        fs::read(&path).map_or(Body::File(path), Body::Bytes)
    }

    /// What is in a file that was not written, wherever it is by now.
    fn still(&mut self, path: &Path, identity: Identity) -> Option<Body> {
        let mut at = path.to_owned();
        let mut places = vec![at.clone()];
        for (from, to) in &self.moves {
            if let Ok(rest) = at.strip_prefix(from) {
                at = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                places.push(at.clone());
            }
        }
        let found = places.iter().rev().find_map(|place| {
            look(self.root, place).ok().flatten().filter(|found| found.identity() == identity)
        });
        let body = found.and_then(|found| self.body(&found));
        if body.is_none() {
            self.gaps.push(gap(&show::path(path), "what was in it cannot be found"));
        }
        body
    }

    fn after(&mut self, path: &Path, now: &Found) -> Content {
        let body = match now.shape {
            Shape::File if self.is_built(path) || self.is_shared(path) => {
                now.place.open().ok().and_then(|file| {
                    // It need not be put back, only be known again.
                    digest(file).ok().map(Body::Hash)
                })
            }
            Shape::File => self.body(now),
            Shape::Link => now.place.target().ok().map(Body::Bytes),
            Shape::Folder | Shape::Pipe | Shape::Socket | Shape::Other => None,
        };
        if body.is_none() && now.shape.has_content() {
            let known = self.gaps.iter().any(|gap| gap.path.is_empty());
            let reason = "what is in it now could not be kept";
            self.gaps.extend((!known).then(|| gap(&show::path(path), reason)));
        }
        let mode = (now.shape != Shape::Link).then(|| now.mode());
        Content { body, size: now.size(), mode, shape: now.shape }
    }

    /// Whether a path is in a folder that builds fill.
    fn is_built(&mut self, path: &Path) -> bool {
        let Some(folder) = path.parent() else { return false };
        if let Some(known) = self.built.get(folder) {
            return *known;
        }
        let built = builds::folder(self.root, folder).is_some();
        self.built.insert(folder.to_owned(), built);
        built
    }

    /// Whether a path is an object of a repository that was there before, where it will stay.
    fn is_shared(&self, path: &Path) -> bool {
        let around = self.git.around(path);
        let is_made = around.is_some_and(|folder| self.made.contains(folder));
        !is_made && self.git.own(path) == Some(Own::Object)
    }

    /// What is in a file: held if it is short, or else copied, so that nobody can change it.
    fn body(&mut self, file: &Found) -> Option<Body> {
        let size = file.size();
        let mut opened = file.place.open().ok()?;
        if size <= SHORT && size <= self.held {
            self.held -= size;
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut io::Read::take(opened, SHORT), &mut bytes).ok()?;
            return Some(Body::Bytes(bytes));
        }
        if size > self.left {
            let reason = "more than `undo.limit_bytes` allows a call";
            if !self.gaps.iter().any(|gap| gap.reason == reason) {
                self.gaps.push(gap("", reason));
            }
            return None;
        }
        self.left -= size;
        let (path, mut to) = self.fresh().ok()?;
        io::copy(&mut opened, &mut to).ok()?;
        Some(Body::File(path))
    }

    fn fresh(&mut self) -> io::Result<(PathBuf, File)> {
        loop {
            let path = self.folder.join(format!("{}.now", self.next));
            self.next += 1;
            match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok((path, made?)),
            }
        }
    }
}

/// What is at a path.
#[derive(Debug)]
struct Found {
    place: Place,
    stat: Stat,
    shape: Shape,
}

impl Found {
    fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    fn size(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or_default()
    }

    fn identity(&self) -> Identity {
        (self.stat.st_dev, self.stat.st_ino)
    }
}

/// Looks at a path; nothing if there is nothing. Behind a link it would be another file.
fn look(root: &Path, path: &Path) -> Result<Option<Found>, Error> {
    let place = match Place::find(root, path) {
        Ok(place) if place.real(root).ok().as_deref() == Some(path) => place,
        Ok(_) | Err(Error::Missing(_) | Error::Outside(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    match place.stat() {
        Ok(stat) => Ok(Some(Found { shape: shape_of(&stat), place, stat })),
        Err(Error::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
