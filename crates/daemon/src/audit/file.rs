//! The file of the audit log; lines are only appended.

use std::collections::HashMap;
use std::io::{self, SeekFrom};
use std::path::Path;

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::Value;
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncBufReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _, BufReader};

const LOG: &str = "audit.jsonl";

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    bytes: u64,
}

impl Log {
    /// Opens the log, readable by its owner alone, and truncates an incomplete last line. Returns,
    /// for each session with lines after the first `bytes` bytes, the last event with a line.
    pub(super) async fn open(
        folder: &Path,
        known: u64,
    ) -> io::Result<(Self, HashMap<SessionId, Seq>)> {
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).read(true).append(true).mode(0o600).open(folder.join(LOG)).await?;
        // A shorter log was replaced by another program.
        let known = if file.metadata().await?.len() < known { 0 } else { known };
        file.seek(SeekFrom::Start(known)).await?;
        let (mut reader, mut line) = (BufReader::new(&mut file), Vec::new());
        let (mut found, mut bytes) = (HashMap::new(), known);
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line).await?;
            if line.last() != Some(&b'\n') {
                break;
            }
            bytes += read as u64;
            record_line(&mut found, &line);
        }
        file.set_len(bytes).await?;
        Ok((Self { file, bytes }, found))
    }

    /// The length of the log.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends whole lines; durable when it resolves.
    pub(super) async fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.write(lines).await {
            // A part may be stored, and will be written again.
            let _ = self.file.set_len(self.bytes).await;
            return Err(error);
        }
        self.bytes += lines.len() as u64;
        Ok(())
    }

    async fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines).await?;
        self.file.flush().await?;
        self.file.sync_data().await
    }
}

fn record_line(found: &mut HashMap<SessionId, Seq>, line: &[u8]) {
    let Ok(entry) = serde_json::from_slice::<Value>(line) else { return };
    let session = entry["session_id"].as_str().and_then(SessionId::parse);
    if let (Some(session), Some(seq)) = (session, entry["seq"].as_u64()) {
        let last: &mut Seq = found.entry(session).or_default();
        *last = seq.max(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_incomplete_line_is_truncated_and_only_new_lines_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let session = |name: &str| SessionId::parse(name).unwrap();
        let line = |name: &str, seq: Seq| format!("{{\"session_id\":\"{name}\",\"seq\":{seq}}}\n");
        let (mut log, found) = Log::open(dir.path(), 0).await.unwrap();
        assert!(found.is_empty());
        log.append(line("s1", 7).as_bytes()).await.unwrap();
        let known = log.bytes();
        log.append((line("s2", 3) + &line("s2", 5)).as_bytes()).await.unwrap();
        let path = dir.path().join(LOG);
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, whole.clone() + "{\"session_id\":\"s1\",\"se").unwrap();
        let (mut log, found) = Log::open(dir.path(), known).await.unwrap();
        assert_eq!(found, [(session("s2"), 5)].into());
        log.append(line("s3", 1).as_bytes()).await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), whole + &line("s3", 1));
        let (_, found) = Log::open(dir.path(), 1_000_000).await.unwrap();
        assert_eq!(found.len(), 3);
    }
}
