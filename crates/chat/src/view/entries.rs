//! Lays out the entries of the transcript as rows.

use super::code::paint;
use super::markdown::{self, boxed};
use super::palette::{Row, TextRole};
use super::wrap::wrap;
use crate::model::{EntryKind, Tool};
use crate::notice::{Block, Kind};

/// Maximum number of shown lines of a tool's output.
const OUTPUT_LINES_LIMIT: usize = 12;

/// The rows of an entry, with a blank line before it if needed.
pub(super) fn rows(kind: &EntryKind, before: Option<&EntryKind>, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if before.is_some_and(|before| !belongs(before, kind)) {
        rows.push(Row::new());
    }
    rows.extend(match kind {
        EntryKind::UserText(text) => user_text(text, width),
        EntryKind::AnswerText { text, .. } => markdown::rows(text, width),
        EntryKind::OpenBlock(text) => draft(text, width),
        EntryKind::Block(block) => of_block(block, width),
        EntryKind::Tool(tool) => of_tool(tool, width),
        EntryKind::Note(text) => plain(TextRole::Dim, text, width),
        EntryKind::Error(text) => plain(TextRole::Trouble, &format!("! {text}"), width),
    });
    rows
}

/// True if no blank line separates two entries, such as a call and its result.
fn belongs(before: &EntryKind, kind: &EntryKind) -> bool {
    let work = |kind: &EntryKind| match kind {
        EntryKind::Tool(_) => true,
        EntryKind::Block(block) => matches!(block.kind, Kind::ToolOutput),
        EntryKind::UserText(_) | EntryKind::AnswerText { .. } | EntryKind::OpenBlock(_) => false,
        EntryKind::Note(_) | EntryKind::Error(_) => false,
    };
    work(before) && work(kind)
}

fn user_text(text: &str, width: usize) -> Vec<Row> {
    let line = |(nth, line): (usize, &str)| {
        let mark = if nth == 0 { "> " } else { "  " };
        wrap(&[(TextRole::Person, format!("{mark}{line}"))], width, 2)
    };
    text.lines().enumerate().flat_map(line).collect()
}

/// A block that is still being streamed: its first line names the language.
fn draft(text: &str, width: usize) -> Vec<Row> {
    let (fence, code) = text.split_once('\n').unwrap_or((text, ""));
    let language = fence.trim().trim_start_matches(['`', '~']).trim();
    let language = language.split([' ', ',', ':', '{']).next().unwrap_or_default();
    let code = code.trim_end().trim_end_matches('`');
    let mut rows = vec![head(language, "")];
    rows.extend(boxed(paint(language, code), width));
    rows
}

fn of_block(block: &Block, width: usize) -> Vec<Row> {
    match block.kind {
        Kind::Text => markdown::rows(&block.content, width),
        Kind::Error => plain(TextRole::Trouble, &format!("! {}", block.content.trim_end()), width),
        Kind::Interactive => plain(TextRole::Caution, &block.content, width),
        Kind::ToolOutput => output(&block.content, width),
        Kind::Code | Kind::Diff => {
            let language = if block.kind == Kind::Diff { "diff" } else { &block.language };
            let mut rows = vec![head(language, &block.place)];
            rows.extend(boxed(paint(language, &block.content), width));
            rows
        }
    }
}

fn head(language: &str, place: &str) -> Row {
    let name = if language.is_empty() { "text" } else { language };
    let place = if place.is_empty() { String::new() } else { format!(" {place}") };
    vec![(TextRole::Dim, format!("┌ {name}{place}"))]
}

fn output(text: &str, width: usize) -> Vec<Row> {
    let total = text.lines().count();
    let shown: Vec<&str> = text.lines().take(OUTPUT_LINES_LIMIT).collect();
    let language = if shown.iter().any(|line| line.starts_with("@@ ")) { "diff" } else { "" };
    let mut rows = boxed(paint(language, &shown.join("\n")), width);
    if total > OUTPUT_LINES_LIMIT {
        rows.push(vec![(
            TextRole::Dim,
            format!("│ and {} more lines", total - OUTPUT_LINES_LIMIT),
        )]);
    }
    rows
}

fn of_tool(tool: &Tool, width: usize) -> Vec<Row> {
    let (mark, role) = match tool.status.as_deref() {
        None => ("*", TextRole::Caution),
        Some("success") => ("✓", TextRole::Good),
        Some(_) => ("✗", TextRole::Trouble),
    };
    let name = if tool.name.is_empty() { String::new() } else { format!("{} ", tool.name) };
    let message = tool.message.lines().next().unwrap_or_default();
    let line =
        [(role, format!("{mark} ")), (TextRole::Strong, name), (TextRole::Dim, message.to_owned())];
    wrap(&line, width, 2)
}

fn plain(role: TextRole, text: &str, width: usize) -> Vec<Row> {
    let line = |line: &str| wrap(&[(role, super::code::tidy(line))], width, 2);
    text.lines().flat_map(line).collect()
}
