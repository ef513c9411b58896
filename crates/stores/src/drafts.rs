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

/// Empty drafts that stay open for the next turn of their session.
const KEPT_OPEN: usize = 64;

/// Drafts in a directory.
#[derive(Debug)]
pub struct FileDrafts {
    root: PathBuf,
    // A lock of its own for each draft: a slow write holds up its own session alone.
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

    fn draft(&self, session: &SessionId) -> io::Result<Arc<Mutex<Draft>>> {
        let mut drafts = lock(&self.drafts);
        if let Some(draft) = drafts.get(session) {
            return Ok(Arc::clone(draft));
        }
        if drafts.len() >= KEPT_OPEN {
            // Somebody who holds one is about to write to it.
            let used =
                |draft: &Arc<Mutex<Draft>>| Arc::strong_count(draft) > 1 || lock(draft).whole > 0;
            drafts.retain(|session, draft| used(draft) || self.unlink(session).is_err());
        }
        let draft = Arc::new(Mutex::new(Draft::open(&self.path(session)?)?));
        drafts.insert(session.clone(), Arc::clone(&draft));
        Ok(draft)
    }

    /// Ids that were read from a file are not checked by their type, and this one becomes a path.
    fn path(&self, session: &SessionId) -> io::Result<PathBuf> {
        let name = SessionId::parse(session.as_str()).ok_or(ErrorKind::InvalidFilename)?;
        Ok(self.root.join(name.as_str()))
    }

    /// An open draft is emptied, because its session is likely to need it again.
    fn empty(&self, session: &SessionId) -> io::Result<()> {
        let open = lock(&self.drafts).get(session).cloned();
        match open {
            Some(draft) => lock(&draft).empty(),
            None => self.unlink(session),
        }
    }

    fn unlink(&self, session: &SessionId) -> io::Result<()> {
        match fs::remove_file(self.path(session)?) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
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
        if let Err(error) = self.empty(session) {
            tracing::warn!(%session, %error, "a draft could not be cleared");
        }
    }
}

/// One session's draft.
#[derive(Debug)]
struct Draft {
    file: File,
    whole: u64,
    buffer: Vec<u8>,
}

impl Draft {
    /// Opens a draft to go on with it; the torn end of an earlier life is cut off, or nothing
    /// after it could be read.
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let mut draft = Self { file, whole: 0, buffer: Vec::new() };
        if draft.file.metadata()?.len() > 0 {
            draft.whole = record::pieces(&fs::read(path)?).1 as u64;
            draft.file.set_len(draft.whole)?;
        }
        Ok(draft)
    }

    fn empty(&mut self) -> io::Result<()> {
        if self.whole > 0 {
            self.file.set_len(0)?;
            self.whole = 0;
        }
        Ok(())
    }

    fn keep(&mut self, piece: &Piece) -> io::Result<()> {
        self.buffer.clear();
        record::write(&mut self.buffer, piece)?;
        if let Err(error) = self.file.write_all(&self.buffer) {
            // A full disk may have taken half of it.
            self.file.set_len(self.whole)?;
            return Err(error);
        }
        self.whole += self.buffer.len() as u64;
        Ok(())
    }
}

fn unavailable(error: io::Error) -> StorageError {
    StorageError::Unavailable(format!("draft: {error}"))
}
