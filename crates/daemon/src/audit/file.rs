//! The files of the audit log: lines that are only ever added, and how far each session was read.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::Value;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

const LOG: &str = "audit.jsonl";
const PLACES: &str = "audit.places";
/// So many events are read again after a crash rather than noted one by one.
const STRIDE: Seq = 256;
/// Notes are written anew when there are more bytes of them than this, and than they need.
const LONGEST_NOTES: usize = 1024 * 1024;

/// How far a session is in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Everything up to this event was read.
    pub(super) read: Seq,
    /// The last event that has a line.
    pub(super) written: Seq,
}

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    lines: File,
    notes: Notes,
    places: HashMap<SessionId, Place>,
}

/// The file that says how far each session was read.
#[derive(Debug)]
struct Notes {
    path: PathBuf,
    file: File,
    bytes: usize,
    /// What it says.
    noted: HashMap<SessionId, Seq>,
}

impl Log {
    /// Opens the log, readable by its owner alone. A line that a crash cut short is taken off.
    pub(super) async fn open(folder: &Path) -> io::Result<Self> {
        let (log, notes) = (folder.join(LOG), folder.join(PLACES));
        let mut places = HashMap::new();
        let whole = read_lines(&log, |line| note_line(&mut places, line)).await?;
        let read = |line: &str| note_place(&mut places, line);
        read_lines(&notes, read).await?;
        let lines = private(&log).await?;
        lines.set_len(whole).await?;
        let read = places.iter().map(|(session, place)| (session.clone(), place.read)).collect();
        let notes = Notes::new(notes, read).await?;
        Ok(Self { lines, notes, places })
    }

    pub(super) fn place(&self, session: &SessionId) -> Place {
        self.places.get(session).copied().unwrap_or_default()
    }

    /// Adds lines and then notes how far they go: who reads on from an older note finds the lines.
    pub(super) async fn append(
        &mut self,
        session: &SessionId,
        lines: &[u8],
        place: Place,
    ) -> io::Result<()> {
        if !lines.is_empty() {
            self.lines.write_all(lines).await?;
            self.lines.flush().await?;
            self.lines.sync_data().await?;
        }
        self.places.insert(session.clone(), place);
        let noted = self.notes.noted.get(session).copied().unwrap_or_default();
        match !lines.is_empty() || place.read >= noted + STRIDE {
            true => self.notes.add(session, place.read).await,
            false => Ok(()),
        }
    }
}

impl Notes {
    /// A file with one line a session, to be added to.
    async fn new(path: PathBuf, noted: HashMap<SessionId, Seq>) -> io::Result<Self> {
        let draft = path.with_extension("new");
        let _ = tokio::fs::remove_file(&draft).await;
        let mut file = private(&draft).await?;
        let notes: String = noted.iter().map(|(session, read)| note(session, *read)).collect();
        file.write_all(notes.as_bytes()).await?;
        file.flush().await?;
        tokio::fs::rename(&draft, &path).await?;
        Ok(Self { path, file, bytes: notes.len(), noted })
    }

    async fn add(&mut self, session: &SessionId, read: Seq) -> io::Result<()> {
        let line = note(session, read);
        self.noted.insert(session.clone(), read);
        if self.bytes > LONGEST_NOTES.max(self.noted.len() * 2 * line.len()) {
            *self = Self::new(self.path.clone(), std::mem::take(&mut self.noted)).await?;
            return Ok(());
        }
        self.bytes += line.len();
        self.file.write_all(line.as_bytes()).await?;
        self.file.flush().await
    }
}

/// Hands over whole lines; gives how many bytes they are.
async fn read_lines(path: &Path, mut take: impl FnMut(&str)) -> io::Result<u64> {
    let file = match File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let (mut reader, mut line, mut whole) = (BufReader::new(file), Vec::new(), 0);
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).await?;
        if line.last() != Some(&b'\n') {
            return Ok(whole);
        }
        whole += read as u64;
        take(&String::from_utf8_lossy(&line));
    }
}

fn note_line(places: &mut HashMap<SessionId, Place>, line: &str) {
    let Ok(entry) = serde_json::from_str::<Value>(line) else { return };
    let session = entry["session_id"].as_str().and_then(SessionId::parse);
    if let (Some(session), Some(seq)) = (session, entry["seq"].as_u64()) {
        let place: &mut Place = places.entry(session).or_default();
        place.written = place.written.max(seq);
    }
}

fn note_place(places: &mut HashMap<SessionId, Place>, line: &str) {
    let mut words = line.split_whitespace();
    let session = words.next().and_then(SessionId::parse);
    let read = words.next().and_then(|word| word.parse().ok());
    if let (Some(session), Some(read)) = (session, read) {
        places.entry(session).or_default().read = read;
    }
}

fn note(session: &SessionId, read: Seq) -> String {
    format!("{session} {read}\n")
}

async fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::parse(name).unwrap()
    }

    #[tokio::test]
    async fn what_a_crash_cut_short_is_taken_off_and_places_are_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place { read: 9, written: 7 };
        let line = "{\"session_id\":\"s1\",\"seq\":7}\n";
        let mut log = Log::open(dir.path()).await.unwrap();
        log.append(&session("s1"), line.as_bytes(), place).await.unwrap();
        log.append(&session("s2"), b"", Place { read: 300, written: 0 }).await.unwrap();
        log.append(&session("s3"), b"", Place { read: 3, written: 0 }).await.unwrap();
        drop(log);
        let path = dir.path().join(LOG);
        std::fs::write(&path, format!("{line}{{\"session_id\":\"s1\",\"se")).unwrap();
        let log = Log::open(dir.path()).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), line);
        assert_eq!(log.place(&session("s1")), place);
        assert_eq!(log.place(&session("s2")), Place { read: 300, written: 0 });
        assert_eq!(log.place(&session("s3")), Place::default());
    }

    #[tokio::test]
    async fn without_notes_the_lines_say_what_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let line = "{\"session_id\":\"s1\",\"seq\":7}\n";
        std::fs::write(dir.path().join(LOG), line).unwrap();
        let log = Log::open(dir.path()).await.unwrap();
        assert_eq!(log.place(&session("s1")), Place { read: 0, written: 7 });
    }
}
