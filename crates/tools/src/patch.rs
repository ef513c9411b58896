//! Patches: reading both forms of them, and finding where their hunks belong.
//!
//! A patch is read into [`Section`]s, one for each file it names. [`plan`] works out the changes
//! they lead to without making any.

use std::path::PathBuf;

mod apply;
mod envelope_hunk;
mod find;
mod header;
mod parse_envelope;
mod parse_unified;
mod plan;
mod text;

pub(crate) use plan::plan;

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    path: PathBuf,
    action: Action,
    hunks: Vec<Hunk>,
    /// The permissions the file should have.
    mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Create,
    Delete,
    Update,
    Move(PathBuf),
}

/// Lines that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Hunk {
    place: Anchor,
    lines: Vec<Line>,
}

/// What a hunk says of its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Anchor {
    /// Nothing: it comes after the hunk before it.
    #[default]
    Next,
    /// The hunk begins at this line, counted from 0.
    Line(usize),
    /// The hunk comes after these lines, one found after the other.
    After(Vec<String>),
    /// The hunk ends where the file ends, after these lines.
    End(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    side: Side,
    text: String,
    /// Whether the patch says that it is the last of its file and has no end.
    endless: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

impl Line {
    /// A line of a hunk, by its first character.
    fn parse(line: &str) -> Option<Self> {
        // Some models and editors take the blank from an empty line.
        let (side, text) = match line.chars().next() {
            None => (Side::Both, ""),
            Some(' ') => (Side::Both, &line[1..]),
            Some('-') => (Side::Old, &line[1..]),
            Some('+') => (Side::New, &line[1..]),
            Some('\r') if line.len() == 1 => (Side::Both, line),
            Some(_) => return None,
        };
        Some(Self { side, text: text.to_owned(), endless: false })
    }
}

impl Hunk {
    fn old(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.side != Side::New)
    }

    fn old_len(&self) -> usize {
        self.old().count()
    }
}

/// The files that a patch names; none if it cannot be read.
pub(crate) fn paths(patch: &str) -> Vec<PathBuf> {
    let named = |section: Section| match section.action {
        Action::Move(to) => [Some(section.path), Some(to)],
        Action::Create | Action::Delete | Action::Update => [Some(section.path), None],
    };
    parse(patch).into_iter().flatten().flat_map(named).flatten().collect()
}

/// Reads a patch of either form.
fn parse(patch: &str) -> Result<Vec<Section>, String> {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    // A patch that came with CRLF throughout says nothing about the files' own line ends.
    if lines.iter().all(|line| line.ends_with('\r')) {
        lines.iter_mut().for_each(|line| *line = &line[..line.len() - 1]);
    }
    let begin = lines.iter().position(|line| line.trim() == parse_envelope::BEGIN);
    let sections = match begin {
        Some(begin) if !lines[..begin].iter().any(|line| line.starts_with("--- ")) => {
            parse_envelope::parse(&lines, begin + 1)?
        }
        _ => parse_unified::parse(&lines)?,
    };
    if sections.is_empty() {
        return Err(
            "the patch names no file: give a unified diff with ---/+++ lines, or the form \
                    that begins with `*** Begin Patch`"
                .to_owned(),
        );
    }
    Ok(sections)
}

#[cfg(test)]
mod tests;
