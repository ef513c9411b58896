//! A replacement for a summary that no model could write.

use crate::message::{Message, Part, Role};

use super::shorten::shortened;
use super::{History, HistoryEntry};

/// Maximum number of lines; each has at most `DIGEST_LINE_BYTES` bytes.
const DIGEST_LINES: usize = 60;
const DIGEST_LINE_BYTES: usize = 200;
/// Maximum length of the previous summary, in bytes.
const EARLIER_SUMMARY_BYTES: usize = 4_000;

/// A short list of messages and calls, up to a message of a history.
pub(crate) fn digest(history: &History<'_>, upto: usize) -> String {
    let earlier =
        history.summary.map(|summary| shortened(summary.text.clone(), EARLIER_SUMMARY_BYTES));
    let lines: Vec<String> = history.recent[..upto].iter().flat_map(lines).collect();
    let left_out = lines.len().saturating_sub(DIGEST_LINES);
    let note = (left_out > 0).then(|| format!("[{left_out} lines left out]"));
    let heading = "No summary could be written. In short, this was said and done:".to_owned();
    let newest = lines.into_iter().skip(left_out);
    let all = earlier.into_iter().chain([heading]).chain(note).chain(newest);
    all.collect::<Vec<_>>().join("\n")
}

fn lines(HistoryEntry { message, .. }: &HistoryEntry<'_>) -> Vec<String> {
    let who = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        // Results are long and mostly not useful later.
        Role::Tool | Role::System => return Vec::new(),
    };
    let text = one_line(&message.text());
    let text = (!text.is_empty()).then(|| format!("- {who}: {text}"));
    text.into_iter().chain(calls(message)).collect()
}

fn calls(message: &Message) -> impl Iterator<Item = String> {
    message.parts.iter().filter_map(|part| match part {
        Part::Call { tool, input, .. } => {
            Some(format!("- assistant called {tool} {}", one_line(&input.to_string())))
        }
        Part::Text(_) | Part::Context(_) | Part::Thought(_) | Part::Media { .. } => None,
    })
}

fn one_line(text: &str) -> String {
    shortened(text.split_whitespace().collect::<Vec<_>>().join(" "), DIGEST_LINE_BYTES)
        .replace('\n', " ")
}
