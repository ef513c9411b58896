//! Lays out Markdown: headings, lists, bold text and code.

use super::code::{paint, tidy};
use super::palette::{Row, TextRole};
use super::wrap::wrap;

/// Rows of a text.
pub(super) fn rows(text: &str, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut lines = text.trim_end().lines();
    while let Some(line) = lines.next() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => {
                let code = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
                let code = code.collect::<Vec<_>>().join("\n");
                rows.extend(boxed(paint(language.trim(), &code), width));
            }
            None => rows.extend(wrap(&inline(line), width, indent(line))),
        }
    }
    rows
}

/// Code with a vertical line at its left.
pub(super) fn boxed(code: Vec<Row>, width: usize) -> Vec<Row> {
    let inner = width.saturating_sub(2).max(1);
    let framed = |mut row: Row| {
        row.insert(0, (TextRole::Dim, "│ ".into()));
        row
    };
    code.iter().flat_map(|row| wrap(row, inner, 0)).map(framed).collect()
}

/// Indentation of the lines after the first, for lists.
fn indent(line: &str) -> usize {
    let text = line.trim_start();
    let begin = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes() {
        [b'-' | b'*' | b'+' | b'>', b' ', ..] => begin + 2,
        bytes if digits > 0 && bytes.get(digits..digits + 2) == Some(b". ") => begin + digits + 2,
        _ => begin,
    }
}

fn inline(line: &str) -> Row {
    let line = tidy(line);
    let text = line.trim_start();
    if let Some(title) = text.strip_prefix('#').map(|rest| rest.trim_start_matches('#'))
        && title.starts_with(' ')
    {
        return vec![(TextRole::Heading, title.trim().to_owned())];
    }
    let begin = &line[..line.len() - text.len()];
    match text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")) {
        Some(item) => {
            let mut row = vec![(TextRole::Plain, format!("{begin}• "))];
            row.extend(words(item));
            row
        }
        None if text.starts_with("> ") => vec![(TextRole::Dim, line.clone())],
        None => words(&line),
    }
}

/// Words, some of them bold or code. An unclosed mark is shown literally.
fn words(text: &str) -> Row {
    let mut row = Row::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, marked) = rest.split_at(at);
        let (mark, role) = match marked {
            _ if marked.starts_with("**") => ("**", TextRole::Strong),
            _ if marked.starts_with('`') => ("`", TextRole::Inline),
            _ => ("", TextRole::Plain),
        };
        let inner = &marked[mark.len()..];
        let end = if mark.is_empty() { None } else { inner.find(mark).filter(|end| *end > 0) };
        row.push((TextRole::Plain, before.to_owned()));
        match end {
            Some(end) => {
                row.push((role, inner[..end].to_owned()));
                rest = &inner[end + mark.len()..];
            }
            None => {
                let skipped = mark.len().max(1);
                row.push((TextRole::Plain, marked[..skipped].to_owned()));
                rest = &marked[skipped..];
            }
        }
    }
    row.push((TextRole::Plain, rest.to_owned()));
    row
}
