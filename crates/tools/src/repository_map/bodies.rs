//! Finds the parts of a text outside of function bodies.
//!
//! Most of a source file is in functions and irrelevant for the map: without it, parsing is several times as fast.
//! Bodies are recognized by indentation, independent of the language. If lines do not look as expected, nothing is
//! removed.

use std::iter::Peekable;

use tree_sitter::{Point, Range};

/// How many lines the head of a function has at most.
const LONGEST_HEAD: usize = 40;
/// How many lines a body has at most that is taken out.
const LONGEST_BODY: usize = 2000;

/// The parts of a text outside of bodies; empty if that is the whole text.
///
/// `functions` are the offsets of lines in which functions begin.
pub(super) fn outside(text: &[u8], functions: &[usize]) -> Vec<Range> {
    let lines: Vec<Line<'_>> = lines(text).collect();
    let mut functions = functions.iter().copied().peekable();
    let (mut ranges, mut from, mut row) = (Vec::new(), Edge::default(), 0);
    while row < lines.len() {
        if !begins(&mut functions, lines[row].start) {
            row += 1;
            continue;
        }
        match body(&lines[row..]) {
            Some((first, end)) => {
                ranges.push(from.to(Edge { byte: lines[row + first].start, row: row + first }));
                from = Edge { byte: lines[row + end].start, row: row + end };
                row += end;
            }
            None => row += 1,
        }
    }
    if !ranges.is_empty() {
        ranges.push(from.to(Edge { byte: text.len(), row: lines.len() }));
    }
    ranges
}

/// Whether a function begins in the line that begins here.
fn begins(functions: &mut Peekable<impl Iterator<Item = usize>>, line: usize) -> bool {
    while functions.next_if(|start| *start < line).is_some() {}
    functions.peek() == Some(&line)
}

/// The first line of a function's body and the one after its last, if it has one that is indented.
fn body(lines: &[Line<'_>]) -> Option<(usize, usize)> {
    let indent = lines[0].indent();
    let head = lines.iter().take(LONGEST_HEAD);
    let head = head.take_while(|line| !matches!(line.last(), None | Some(b';' | b'}')));
    let mut opening = head.enumerate().filter(|(_, line)| line.last() == Some(b'{'));
    let (opening, _) = opening.find(|(_, line)| line.indent() == indent)?;
    let inside = lines[opening + 1..].iter().take(LONGEST_BODY);
    let inside = inside.take_while(|line| line.is_inside(indent)).count();
    let end = opening + 1 + inside;
    let closing = lines.get(end)?;
    let is_closed = closing.indent() == indent && closing.text[indent.len()..].starts_with(b"}");
    (is_closed && inside > 0).then_some((opening + 1, end))
}

/// A place between two lines.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    byte: usize,
    row: usize,
}

impl Edge {
    fn to(self, end: Self) -> Range {
        Range {
            start_byte: self.byte,
            end_byte: end.byte,
            start_point: Point { row: self.row, column: 0 },
            end_point: Point { row: end.row, column: 0 },
        }
    }
}

struct Line<'a> {
    start: usize,
    /// Without space at its end.
    text: &'a [u8],
}

impl<'a> Line<'a> {
    fn indent(&self) -> &'a [u8] {
        let deep = self.text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        &self.text[..deep]
    }

    fn last(&self) -> Option<u8> {
        self.text.last().copied()
    }

    /// True if the line is inside a block with this indentation: it is deeper, empty, or always at the margin, such
    /// as `#if` and labels in C.
    fn is_inside(&self, indent: &[u8]) -> bool {
        let is_deeper = self.indent().len() > indent.len();
        is_deeper || self.text.is_empty() || self.text[0] == b'#' || self.last() == Some(b':')
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split(|byte| *byte == b'\n').map(move |line| {
        let begin = start;
        start += line.len() + 1;
        Line { start: begin, text: line.trim_ascii_end() }
    })
}

#[cfg(test)]
mod tests;
