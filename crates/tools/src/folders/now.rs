//! What is at a path now, and whether that is what was recorded.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use quintet_kernel::change::Shape;
use quintet_kernel::id::BlobId;
use quintet_kernel::port::{Body, Content};
use sha2::{Digest, Sha256};

use crate::beneath::{Error, Place, shape_of};
use crate::repository::says_the_same;
use crate::show;

/// How much is compared at once.
const PIECE: usize = 64 * 1024;
/// What is longer is compared byte by byte.
const LONGEST_INDEX: u64 = 256 * 1024 * 1024;

/// What is at a path; nothing unless said otherwise.
#[derive(Debug, Default)]
pub(crate) struct Now {
    there: Option<There>,
}

#[derive(Debug)]
struct There {
    place: Place,
    path: PathBuf,
    shape: Shape,
    mode: u32,
    size: u64,
}

/// Looks at a path. What is behind a link is another file, which may be meant by another change.
pub(crate) fn now(root: &Path, path: &Path) -> Result<Now, String> {
    let place = match Place::find(root, path) {
        Ok(place) => place,
        Err(Error::Missing(_)) => return Ok(Now::default()),
        Err(error) => return Err(error.to_string()),
    };
    if place.real(root).ok().as_deref() != Some(path) {
        return Err(format!("{} is behind a link now", show::path(path)));
    }
    let stat = match place.stat() {
        Ok(stat) => stat,
        Err(Error::Missing(_)) => return Ok(Now::default()),
        Err(error) => return Err(error.to_string()),
    };
    let (shape, mode) = (shape_of(&stat), stat.st_mode & 0o7777);
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(Now { there: Some(There { place, path: path.to_owned(), shape, mode, size }) })
}

impl Now {
    /// Whether there is anything.
    pub(crate) fn is_there(&self) -> bool {
        self.there.is_some()
    }

    /// Whether there is something of this shape.
    pub(crate) fn is(&self, shape: Shape) -> bool {
        self.there.as_ref().is_some_and(|there| there.shape == shape)
    }

    /// The permissions, where there are any.
    pub(crate) fn mode(&self) -> Option<u32> {
        let there = self.there.as_ref().filter(|there| there.shape != Shape::Link)?;
        Some(there.mode)
    }

    /// Whether this is what was recorded. What was not kept, nobody can say.
    pub(crate) fn matches(&self, then: Option<&Content>) -> Result<bool, String> {
        let (Some(there), Some(then)) = (&self.there, then) else {
            return Ok(self.there.is_none() && then.is_none());
        };
        let other_mode = then.mode.is_some() && self.mode().is_some() && then.mode != self.mode();
        if there.shape != then.shape || other_mode {
            return Ok(false);
        }
        match (&then.body, then.shape) {
            (Some(body), Shape::File) => there.holds(body),
            (Some(body), Shape::Link) => {
                let target = there.place.target().map_err(|error| error.to_string())?;
                match body {
                    Body::Hash(hash) => Ok(digest(&*target).is_ok_and(|mine| mine == *hash)),
                    body => Ok(*body == Body::Bytes(target)),
                }
            }
            (None, Shape::File | Shape::Link) => Ok(false),
            (_, Shape::Folder | Shape::Pipe | Shape::Socket | Shape::Other) => Ok(true),
        }
    }

    /// Whether what git has staged here is what was recorded.
    pub(crate) fn stages(&self, then: &Content) -> bool {
        let now = self.there.as_ref().and_then(|there| there.place.open().ok());
        let now = now.and_then(|file| index(file).ok());
        now.is_some_and(|now| staged(then).is_some_and(|then| says_the_same(&now, &then)))
    }
}

/// Whether what git had staged at two moments is the same.
pub(crate) fn stages_alike(one: &Content, other: &Content) -> bool {
    staged(one).is_some_and(|one| staged(other).is_some_and(|other| says_the_same(&one, &other)))
}

/// What was kept of git's index.
fn staged(then: &Content) -> Option<Vec<u8>> {
    match then.body.as_ref()? {
        Body::Bytes(bytes) => Some(bytes.clone()),
        Body::File(path) => File::open(path).and_then(index).ok(),
        Body::Hash(_) => None,
    }
}

/// What is in a file that git has as its index.
fn index(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LONGEST_INDEX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl There {
    fn holds(&self, body: &Body) -> Result<bool, String> {
        let mine = self.place.open().map_err(|error| error.to_string())?;
        let same = match body {
            Body::Bytes(bytes) if bytes.len() as u64 != self.size => Ok(false),
            Body::Bytes(bytes) => same(mine, &**bytes),
            Body::Hash(hash) => digest(mine).map(|mine| mine == *hash),
            Body::File(path) => File::open(path)
                .and_then(|kept| Ok(kept.metadata()?.len() == self.size && same(mine, kept)?)),
        };
        same.map_err(|error| format!("{}: {error}", show::path(&self.path)))
    }
}

/// What content goes by, however long it is.
pub(crate) fn digest(mut from: impl Read) -> io::Result<BlobId> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match full(&mut from, &mut piece)? {
            0 => break,
            read => hash.update(&piece[..read]),
        }
    }
    BlobId::parse(&hex::encode(hash.finalize())).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether two things hold the same.
pub(crate) fn same(mut a: impl Read, mut b: impl Read) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let (read, other) = (full(&mut a, &mut left)?, full(&mut b, &mut right)?);
        if left[..read] != right[..other] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or there is no more.
fn full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match from.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}
