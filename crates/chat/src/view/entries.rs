//! What was said and done, as rows.

use super::code::paint;
use super::markdown::{self, boxed};
use super::palette::{Ink, Row};
use super::wrap::wrap;
use crate::model::{Piece, Tool};
use crate::notice::{Block, Kind};

/// Lines of a tool's output that are shown.
const OUTPUT: usize = 12;

/// The rows of a piece, with what sets it apart from the one before.
pub(super) fn rows(piece: &Piece, before: Option<&Piece>, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if before.is_some_and(|before| !belongs(before, piece)) {
        rows.push(Row::new());
    }
    rows.extend(match piece {
        Piece::Said(text) => said(text, width),
        Piece::Prose { text, .. } => markdown::rows(text, width),
        Piece::Draft(text) => draft(text, width),
        Piece::Block(block) => of_block(block, width),
        Piece::Tool(tool) => of_tool(tool, width),
        Piece::Note(text) => plain(Ink::Dim, text, width),
        Piece::Trouble(text) => plain(Ink::Trouble, &format!("! {text}"), width),
    });
    rows
}

/// Calls and what came of them stand together.
fn belongs(before: &Piece, piece: &Piece) -> bool {
    let work = |piece: &Piece| match piece {
        Piece::Tool(_) => true,
        Piece::Block(block) => matches!(block.kind, Kind::ToolOutput),
        Piece::Said(_) | Piece::Prose { .. } | Piece::Draft(_) => false,
        Piece::Note(_) | Piece::Trouble(_) => false,
    };
    work(before) && work(piece)
}

fn said(text: &str, width: usize) -> Vec<Row> {
    let line = |(nth, line): (usize, &str)| {
        let mark = if nth == 0 { "> " } else { "  " };
        wrap(&[(Ink::Person, format!("{mark}{line}"))], width, 2)
    };
    text.lines().enumerate().flat_map(line).collect()
}

/// A block that is being written: its first line names the language.
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
        Kind::Error => plain(Ink::Trouble, &format!("! {}", block.content.trim_end()), width),
        Kind::Interactive => plain(Ink::Caution, &block.content, width),
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
    vec![(Ink::Dim, format!("┌ {name}{place}"))]
}

fn output(text: &str, width: usize) -> Vec<Row> {
    let total = text.lines().count();
    let shown: Vec<&str> = text.lines().take(OUTPUT).collect();
    let language = if shown.iter().any(|line| line.starts_with("@@ ")) { "diff" } else { "" };
    let mut rows = boxed(paint(language, &shown.join("\n")), width);
    if total > OUTPUT {
        rows.push(vec![(Ink::Dim, format!("│ and {} more lines", total - OUTPUT))]);
    }
    rows
}

fn of_tool(tool: &Tool, width: usize) -> Vec<Row> {
    let (mark, ink) = match tool.status.as_deref() {
        None => ("*", Ink::Caution),
        Some("success") => ("✓", Ink::Good),
        Some(_) => ("✗", Ink::Trouble),
    };
    let name = if tool.name.is_empty() { String::new() } else { format!("{} ", tool.name) };
    let message = tool.message.lines().next().unwrap_or_default();
    let line = [(ink, format!("{mark} ")), (Ink::Strong, name), (Ink::Dim, message.to_owned())];
    wrap(&line, width, 2)
}

fn plain(ink: Ink, text: &str, width: usize) -> Vec<Row> {
    let line = |line: &str| wrap(&[(ink, super::code::tidy(line))], width, 2);
    text.lines().flat_map(line).collect()
}
