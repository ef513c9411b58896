//! Drafts as one append-only file a session.
//!
//! The promise is to survive the death of this process, not of the machine: a piece is handed to
//! the operating system with one `write` and never synced, and nothing is buffered on this side.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quintet_kernel::follow::Piece;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{Drafts, StorageError};

use crate::data_dir::create_private;
use crate::{Error, lock};

mod record;

/// Drafts in a directory, best one in memory: they need not outlive the machine.
#[derive(Debug)]
pub struct FileDrafts {
    root: PathBuf,
    // A lock of its own for each draft: what waits for a disk holds up its own session alone.
    drafts: Mutex<HashMap<SessionId, Arc<Mutex<Draft>>>>,
}

impl FileDrafts {
    /// Opens a directory of drafts; creates it if it is not there.
    pub fn open(root: &Path) -> Result<Self, Error> {
        create_private(root)?;
        let drafts = Self { root: root.into(), drafts: Mutex::default() };
        if let Err(error) = drafts.tidy() {
            tracing::warn!(%error, "empty drafts could not be removed");
        }
        Ok(drafts)
    }

    /// Takes over the drafts of an earlier daemon that kept them in another directory.
    pub(crate) fn take_over(&self, other: &Path) -> io::Result<()> {
        for file in fs::read_dir(other)? {
            let file = file?;
            fs::copy(file.path(), self.root.join(file.file_name()))?;
            fs::remove_file(file.path())?;
        }
        fs::remove_dir(other)
    }

    /// Takes the empty files of an earlier life away.
    fn tidy(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.root)? {
            let file = file?;
            if file.metadata()?.len() == 0 {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }

    /// A session's draft, open or not.
    fn draft(&self, session: &SessionId) -> io::Result<Arc<Mutex<Draft>>> {
        let path = self.path(session)?;
        let mut drafts = lock(&self.drafts);
        let draft = drafts.entry(session.clone()).or_insert_with(|| Arc::new(Draft::new(path)));
        Ok(Arc::clone(draft))
    }

    /// Ids that were read from a file are not checked by their type, and this one becomes a path.
    fn path(&self, session: &SessionId) -> io::Result<PathBuf> {
        let name = SessionId::parse(session.as_str()).ok_or(ErrorKind::InvalidFilename)?;
        Ok(self.root.join(name.as_str()))
    }
}

impl Drafts for FileDrafts {
    fn keep(&self, session: &SessionId, piece: &Piece) -> Result<(), StorageError> {
        let draft = self.draft(session).map_err(unavailable)?;
        lock(&draft).keep(piece).map_err(unavailable)
    }

    fn load(&self, session: &SessionId) -> Result<Vec<Piece>, StorageError> {
        match self.path(session).and_then(fs::read) {
            Ok(bytes) => Ok(record::pieces(&bytes).0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn clear(&self, session: &SessionId) {
        let cleared = self.draft(session).and_then(|draft| lock(&draft).clear());
        if let Err(error) = cleared {
            tracing::warn!(%session, %error, "a draft could not be cleared");
        }
    }

    fn release(&self, session: &SessionId) {
        let Some(draft) = lock(&self.drafts).remove(session) else { return };
        if let Err(error) = lock(&draft).close() {
            tracing::warn!(%session, %error, "an empty draft could not be removed");
        }
    }
}

/// One session's draft.
#[derive(Debug)]
struct Draft {
    path: PathBuf,
    /// Opened when something is first kept.
    file: Option<File>,
    whole: u64,
    buffer: Vec<u8>,
}

impl Draft {
    fn new(path: PathBuf) -> Mutex<Self> {
        Mutex::new(Self { path, file: None, whole: 0, buffer: Vec::new() })
    }

    /// Opens a draft to go on with it; the torn end of an earlier life is cut off, or nothing
    /// after it could be read.
    fn open(&mut self) -> io::Result<File> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
        self.whole = 0;
        if file.metadata()?.len() > 0 {
            self.whole = record::pieces(&fs::read(&self.path)?).1 as u64;
            file.set_len(self.whole)?;
        }
        Ok(file)
    }

    fn keep(&mut self, piece: &Piece) -> io::Result<()> {
        self.buffer.clear();
        record::write(&mut self.buffer, piece)?;
        let file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        let file = self.file.insert(file);
        if let Err(error) = file.write_all(&self.buffer) {
            // A full disk may have taken half of it.
            file.set_len(self.whole)?;
            return Err(error);
        }
        self.whole += self.buffer.len() as u64;
        Ok(())
    }

    /// Empties a draft that is open, because its session is likely to need it again.
    fn clear(&mut self) -> io::Result<()> {
        match &self.file {
            Some(file) if self.whole > 0 => file.set_len(0)?,
            Some(_) => {}
            None => self.unlink()?,
        }
        self.whole = 0;
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let was_open = self.file.take().is_some();
        if was_open && self.whole == 0 { self.unlink() } else { Ok(()) }
    }

    fn unlink(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

fn unavailable(error: io::Error) -> StorageError {
    StorageError::Unavailable(format!("draft: {error}"))
}
