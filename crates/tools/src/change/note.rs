//! Notes of what files were before a call changes them, for the case that the daemon dies meanwhile.
//!
//! A note is written before the first change and stays until the turn is over and kept, so at the
//! next start it can be told what became of the files. Like text in flight it survives the death of
//! this process, not of the machine: it is not synced.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{ChangedFile, Invocation};
use quintet_kernel::{CallId, TurnId};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::Change;
use super::record::became;
use crate::beneath::Content;

/// Where notes are.
#[derive(Debug)]
pub(crate) struct Notes {
    folder: PathBuf,
}

/// The note of one call, to be written.
#[derive(Debug)]
pub(crate) struct Note {
    pub(super) root: PathBuf,
    /// Where it goes; nowhere if the call's names cannot be those of files.
    file: Option<PathBuf>,
}

/// A file as the first line of a note has it; what is in it follows after that line.
#[derive(Debug, Serialize, Deserialize)]
struct Noted {
    path: PathBuf,
    before: Option<Before>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Before {
    size: usize,
    mode: Option<u32>,
    shape: FileKind,
}

impl Notes {
    /// Notes in this folder, which is made when there is something to note.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The note of a call.
    pub(crate) fn of(&self, call: &Invocation) -> Note {
        Note { root: call.workspace.clone(), file: self.file(&call.turn, &call.call) }
    }

    /// What became of the files that a call noted; nothing if it noted none.
    pub(crate) fn changes(
        &self,
        root: &Path,
        turn: &TurnId,
        call: &CallId,
    ) -> Option<Vec<ChangedFile>> {
        let note = fs::read(self.file(turn, call)?).ok()?;
        let files = read(&note)?;
        let became =
            |(path, before): (PathBuf, Option<Content>)| became(root, &path, before.as_ref());
        Some(files.into_iter().filter_map(became).collect())
    }

    /// Where a snapshot is put before a call; nowhere if the call's names cannot be those of files.
    pub(crate) fn base(&self, turn: &TurnId, call: &CallId) -> Option<PathBuf> {
        self.file(turn, call)
    }

    /// Forgets what the calls of a turn noted.
    pub(crate) fn forget(&self, turn: &TurnId) {
        let Some(folder) = self.turn(turn) else { return };
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%turn, %error, "the notes of a turn could not be removed");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Ids that were read from a file are not checked by their type, and these become a path.
    fn turn(&self, turn: &TurnId) -> Option<PathBuf> {
        Some(self.folder.join(TurnId::parse(turn.as_str())?.as_str()))
    }

    fn file(&self, turn: &TurnId, call: &CallId) -> Option<PathBuf> {
        Some(self.turn(turn)?.join(CallId::parse(call.as_str())?.as_str()))
    }
}

impl Note {
    /// Writes down what the files are that are about to change. Without it the change can be made all
    /// the same: only if it is cut off, nobody will know.
    pub(super) fn write(&self, changes: &[Change], folders: &[PathBuf]) {
        let Some(file) = &self.file else { return };
        if let Err(error) = write(file, changes, folders) {
            tracing::warn!(%error, "what files were before a call could not be noted");
        }
    }
}

fn write(file: &Path, changes: &[Change], folders: &[PathBuf]) -> io::Result<()> {
    let folders = folders.iter().map(|folder| (folder.as_path(), None));
    let sides: Vec<_> = folders.chain(changes.iter().flat_map(Change::sides)).collect();
    let noted = |(path, before): &(&Path, Option<&Content>)| Noted {
        path: (*path).to_owned(),
        before: before.map(|it| Before { size: it.bytes.len(), mode: it.mode, shape: it.shape }),
    };
    let folder = file.parent().unwrap_or(file);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut note = NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut note, &sides.iter().map(noted).collect::<Vec<_>>())?;
    note.write_all(b"\n")?;
    for content in sides.iter().filter_map(|(_, before)| *before) {
        note.write_all(&content.bytes)?;
    }
    note.persist(file)?;
    Ok(())
}

/// The files of a note; nothing if it is not whole.
fn read(note: &[u8]) -> Option<Vec<(PathBuf, Option<Content>)>> {
    let end = memchr::memchr(b'\n', note)?;
    let (head, mut rest) = (&note[..end], &note[end + 1..]);
    let files: Vec<Noted> = serde_json::from_slice(head).ok()?;
    let mut read = Vec::with_capacity(files.len());
    for Noted { path, before } in files {
        let content = match before {
            None => None,
            Some(Before { size, mode, shape }) => {
                let (bytes, after) = rest.split_at_checked(size)?;
                rest = after;
                Some(Content { bytes: bytes.to_vec(), mode, shape })
            }
        };
        read.push((path, content));
    }
    rest.is_empty().then_some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_note_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("turn/call");
        let before = Some(Content::file(b"old\n\xff".to_vec(), Some(0o600)));
        let changes =
            [Change::of("a".into(), before.clone(), None), Change::of("b".into(), None, None)];
        write(&file, &changes, &[]).unwrap();
        let note = fs::read(&file).unwrap();
        assert_eq!(read(&note), Some(vec![("a".into(), before), ("b".into(), None)]));
        for end in 0..note.len() {
            assert_eq!(read(&note[..end]), None);
        }
        assert_eq!(read(&[&note[..], b"x"].concat()), None);
    }
}
