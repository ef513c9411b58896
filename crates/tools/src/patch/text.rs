//! A file as lines that remember their ends.

/// A line and its end: `\n`, `\r\n` or, for the last, perhaps none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileLine {
    pub(super) text: Vec<u8>,
    pub(super) end: &'static str,
}

impl FileLine {
    /// The line as a diff has it, which knows only `\n`.
    pub(super) fn raw(&self) -> Vec<u8> {
        let mut raw = self.text.clone();
        if self.end == "\r\n" {
            raw.push(b'\r');
        }
        raw
    }
}

/// Splits a file.
pub(super) fn split(bytes: &[u8]) -> Vec<FileLine> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(line).collect()
}

fn line(bytes: &[u8]) -> FileLine {
    let (text, end) = if let Some(text) = bytes.strip_suffix(b"\r\n") {
        (text, "\r\n")
    } else if let Some(text) = bytes.strip_suffix(b"\n") {
        (text, "\n")
    } else {
        (bytes, "")
    };
    FileLine { text: text.to_vec(), end }
}

/// The end that new lines get: the one that most lines have.
pub(super) fn usual_end(lines: &[FileLine]) -> &'static str {
    let crlf = lines.iter().filter(|line| line.end == "\r\n").count();
    let lf = lines.iter().filter(|line| line.end == "\n").count();
    if crlf > lf { "\r\n" } else { "\n" }
}

/// Joins a file; only its last line may be without an end.
pub(super) fn join(lines: &[FileLine], usual: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        bytes.extend_from_slice(&line.text);
        let is_last = index + 1 == lines.len();
        let end = if line.end.is_empty() && !is_last { usual } else { line.end };
        bytes.extend_from_slice(end.as_bytes());
    }
    bytes
}
