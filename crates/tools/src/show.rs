//! How much of a text the model reads, and how names are written in it.

use std::path::Path;

use quintet_kernel::port::ToolOutput;
use quintet_kernel::tool::Outcome;

use crate::run::Capture;
use crate::utf8;

/// A text of any length: cut in the middle if it is long, and then kept whole as a file.
pub(crate) fn output(text: &str, name: &str) -> ToolOutput {
    let capture = captured(text);
    let files = capture.file(name).into_iter().collect();
    ToolOutput::with_files(Outcome::success(capture.text()), files)
}

/// A text that says why something did not work; `error` is one line of it.
pub(crate) fn failure(text: &str, error: &str, name: &str) -> ToolOutput {
    let capture = captured(text);
    let files = capture.file(name).into_iter().collect();
    ToolOutput::with_files(Outcome::failed_with(capture.text(), error), files)
}

/// A text for a person who is asked, cut in the middle if it is long.
pub(crate) fn preview(text: &str) -> String {
    captured(text).text()
}

fn captured(text: &str) -> Capture {
    let mut capture = Capture::default();
    capture.push(text.as_bytes());
    capture
}

/// A path on one line, whatever is in its name.
pub(crate) fn path(path: &Path) -> String {
    match path.to_str() {
        Some(text) if !text.contains(char::is_control) => text.to_owned(),
        Some(_) | None => format!("{path:?}"),
    }
}

/// A line without its end, at most `most` bytes of it.
pub(crate) fn line(bytes: &[u8], most: usize) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    if bytes.len() <= most {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let head = &bytes[..most];
    let head = &head[..utf8::whole(head)];
    let left = bytes.len() - head.len();
    format!("{} [{left} more bytes]", String::from_utf8_lossy(head))
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
