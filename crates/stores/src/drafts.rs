//! Drafts as one append-only file per session.
//!
//! A draft survives the end of the process, but not of the machine: each delta is passed to the
//! operating system with one `write`, never synced and never buffered here.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quintet_kernel::follow::Delta;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Drafts, StorageError};

use crate::data_dir::create_private;
use crate::{Error, lock};

mod record;

/// Drafts in a directory, preferably one in memory.
#[derive(Debug)]
pub struct FileDrafts {
    root: PathBuf,
    /// The directory to use if the first one disappears, for example at the end of a login
    /// session.
    fallback: Option<PathBuf>,
    // Each draft has its own lock, so that a slow disk blocks only one session.
    drafts: Mutex<HashMap<SessionId, Arc<Mutex<Draft>>>>,
}

impl FileDrafts {
    /// Opens a directory of drafts; creates it if it does not exist. Fails if it cannot be
    /// created.
    pub fn open(root: &Path) -> Result<Self, Error> {
        create_private(root)?;
        let drafts = Self { root: root.into(), fallback: None, drafts: Mutex::default() };
        if let Err(error) = drafts.tidy() {
            tracing::warn!(%error, "could not remove empty drafts");
        }
        Ok(drafts)
    }

    /// Sets the directory to use if this one disappears.
    pub(crate) fn with_fallback(self, fallback: &Path) -> Self {
        Self { fallback: Some(fallback.into()), ..self }
    }

    /// Moves the drafts of an earlier daemon here from another directory.
    pub(crate) fn take_over(&self, other: &Path) -> io::Result<()> {
        for file in fs::read_dir(other)? {
            let file = file?;
            fs::copy(file.path(), self.root.join(file.file_name()))?;
            fs::remove_file(file.path())?;
        }
        fs::remove_dir(other)
    }

    /// Deletes empty drafts of an earlier process.
    fn tidy(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.root)? {
            let file = file?;
            if file.metadata()?.len() == 0 {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    /// A session's draft, opened on demand.
    fn draft(&self, session: &SessionId) -> io::Result<Arc<Mutex<Draft>>> {
        let paths = self.paths(session)?;
        let mut drafts = lock(&self.drafts);
        let draft = drafts.entry(session.clone()).or_insert_with(|| Arc::new(Draft::new(paths)));
        Ok(Arc::clone(draft))
    }

    /// The possible paths of a draft, the usual one first. The id is validated here,
    /// because ids that were read from a file are not checked by their type.
    fn paths(&self, session: &SessionId) -> io::Result<Vec<PathBuf>> {
        let name = SessionId::parse(session.as_str()).ok_or(ErrorKind::InvalidFilename)?;
        let roots = [Some(&self.root), self.fallback.as_ref()].into_iter().flatten();
        Ok(roots.map(|root| root.join(name.as_str())).collect())
    }
}

impl Drafts for FileDrafts {
    fn push(&self, session: &SessionId, delta: &Delta) -> Result<(), StorageError> {
        let draft = self.draft(session).map_err(unavailable)?;
        lock(&draft).keep(delta).map_err(unavailable)
    }

    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError> {
        for path in self.paths(session).map_err(unavailable)? {
            match fs::read(path) {
                Ok(bytes) => return Ok(record::deltas(&bytes).0),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(unavailable(error)),
            }
        }
        Ok(Vec::new())
    }

    fn clear(&self, session: &SessionId) {
        let cleared = self.draft(session).and_then(|draft| lock(&draft).clear());
        if let Err(error) = cleared {
            tracing::warn!(%session, %error, "could not clear a draft");
        }
    }

    fn release(&self, session: &SessionId) {
        let Some(draft) = lock(&self.drafts).remove(session) else { return };
        if let Err(error) = lock(&draft).close() {
            tracing::warn!(%session, %error, "could not remove an empty draft");
        }
    }
}

/// One session's draft.
#[derive(Debug)]
struct Draft {
    /// The possible paths, the usual one first.
    paths: Vec<PathBuf>,
    /// Opened with the first delta.
    file: Option<File>,
    whole: u64,
    /// The last record that was written here.
    last: Option<record::Last>,
    buffer: Vec<u8>,
}

impl Draft {
    fn new(paths: Vec<PathBuf>) -> Mutex<Self> {
        Mutex::new(Self { paths, file: None, whole: 0, last: None, buffer: Vec::new() })
    }

    /// Opens the draft for appending; an incomplete last record is truncated, or nothing
    /// after it could be read.
    fn open(&mut self) -> io::Result<File> {
        let mut file = self.find()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        self.whole = record::deltas(&bytes).1 as u64;
        if self.whole < bytes.len() as u64 {
            file.set_len(self.whole)?;
        }
        Ok(file)
    }

    /// Creates the file at the first path that works. The next path is tried only if the
    /// directory of the one before disappeared and cannot be created again.
    fn find(&self) -> io::Result<File> {
        let mut gone = io::Error::from(ErrorKind::NotFound);
        for path in &self.paths {
            let opened = create(path).or_else(|error| match (error.kind(), path.parent()) {
                (ErrorKind::NotFound, Some(root)) => {
                    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
                    create(path)
                }
                _ => Err(error),
            });
            match opened {
                Err(error) if is_gone(&error) => gone = error,
                opened => return opened,
            }
        }
        Err(gone)
    }

    /// Continues in a new file with the content of one that was deleted.
    fn move_from(&mut self, mut lost: File) -> io::Result<File> {
        let mut bytes = Vec::new();
        lost.rewind()?;
        lost.read_to_end(&mut bytes)?;
        let mut file = self.find()?;
        file.set_len(0)?;
        file.write_all(&bytes)?;
        Ok(file)
    }

    fn keep(&mut self, delta: &Delta) -> io::Result<()> {
        self.buffer.clear();
        record::write(&mut self.buffer, delta, self.last.as_ref())?;
        let file = match self.file.take() {
            Some(file) if file.metadata()?.nlink() == 0 => self.move_from(file)?,
            Some(file) => file,
            None => self.open()?,
        };
        let file = self.file.insert(file);
        if let Err(error) = file.write_all(&self.buffer) {
            // A full disk may have stored a part of the record.
            file.set_len(self.whole)?;
            return Err(error);
        }
        self.whole += self.buffer.len() as u64;
        self.last = Some(record::Last::of(delta));
        Ok(())
    }

    /// Empties an open draft, because its session is likely to need it again.
    fn clear(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) if self.whole > 0 => file.set_len(0)?,
            Some(_) => {}
            None => self.unlink()?,
        }
        (self.whole, self.last) = (0, None);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let was_open = self.file.take().is_some();
        self.last = None;
        if was_open && self.whole == 0 { self.unlink() } else { Ok(()) }
    }

    fn unlink(&self) -> io::Result<()> {
        self.paths.iter().try_for_each(|path| match fs::remove_file(path) {
            Err(error) if is_missing(&error) => Ok(()),
            done => done,
        })
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// True if a directory does not exist and cannot be created by this daemon.
fn is_gone(error: &io::Error) -> bool {
    let denied = matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
    );
    denied || is_missing(error)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn unavailable(error: io::Error) -> StorageError {
    StorageError::Unavailable(format!("draft: {error}"))
}
