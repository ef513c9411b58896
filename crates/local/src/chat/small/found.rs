//! Formats search results for a small model: it takes the first line for the right one, so lines
//! with definitions come first and are marked.

use super::code;

/// The separators between path, line number and line: of a match, and of a line around it.
const MARKS: [char; 2] = [':', '-'];

/// A line of a search result.
struct FoundLine<'t> {
    path: &'t str,
    number: &'t str,
    text: &'t str,
    is_match: bool,
}

/// A search result with its lines as sentences; other results are unchanged.
pub(crate) fn as_sentences(result: &str) -> String {
    let lines: Vec<&str> = result.lines().filter(|line| *line != "--").collect();
    let found: Vec<FoundLine<'_>> = lines.iter().filter_map(|line| parse(line)).collect();
    let rest = lines.iter().filter(|line| parse(line).is_none()).map(|line| (*line).to_owned());
    let (defining, other): (Vec<_>, Vec<_>) =
        found.iter().filter(|line| line.is_match).partition(|line| code::head(line.text).is_some());
    let matches = defining.into_iter().chain(other);
    matches.map(|line| sentence(line, &found)).chain(rest).collect::<Vec<_>>().join("\n")
}

fn sentence(line: &FoundLine<'_>, all: &[FoundLine<'_>]) -> String {
    let FoundLine { path, number, text, .. } = line;
    let kind = if code::head(text).is_some() {
        " (definition)".to_owned()
    } else if is_import(text) {
        " (import)".to_owned()
    } else {
        enclosing(line, all).map(|head| format!(" (in {head})")).unwrap_or_default()
    };
    format!("{path}, line {number}{kind}: {}", text.trim())
}

/// The head of the definition that contains a line, if it was found, too.
fn enclosing<'t>(line: &FoundLine<'t>, all: &[FoundLine<'t>]) -> Option<&'t str> {
    let number: usize = line.number.parse().ok()?;
    let before = all.iter().rev().filter(|other| {
        other.path == line.path && other.number.parse().is_ok_and(|at: usize| at < number)
    });
    let depth = indent(line.text);
    before
        .filter(|other| indent(other.text) < depth)
        .find_map(|other| code::head(other.text))
        .map(|head| head.trim_end_matches('('))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    let begins = ["import ", "from ", "use ", "#include", "require "];
    begins.iter().any(|word| line.starts_with(word)) || line.contains("= require(")
}

/// Parses `path:12:text` or `path-12-text`.
fn parse(line: &str) -> Option<FoundLine<'_>> {
    MARKS.iter().find_map(|&mark| {
        let starts = line.match_indices(mark).map(|(at, _)| at);
        starts.filter(|at| *at > 0).find_map(|at| {
            let rest = &line[at + 1..];
            let (number, text) = rest.split_once(mark)?;
            let counts = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            counts.then_some(FoundLine { path: &line[..at], number, text, is_match: mark == ':' })
        })
    })
}

#[cfg(test)]
mod tests;
