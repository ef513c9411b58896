//! Reads patches between `*** Begin Patch` and `*** End Patch`.

use std::path::PathBuf;

use super::{Action, Hunk, Line, Section, Side, envelope_hunk};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";

/// Reads all of it, from the line after its beginning.
pub(super) fn parse(lines: &[&str], begin: usize) -> Result<Vec<Section>, String> {
    let mut sections = Vec::new();
    let mut at = begin;
    loop {
        let Some(line) = lines.get(at) else {
            return Err(format!("the patch has no `{END}`; was it cut?"));
        };
        if line.trim_end() == END {
            return Ok(sections);
        }
        if line.trim().is_empty() {
            at += 1;
            continue;
        }
        let (section, next) = section(lines, at)
            .map_err(|(at, why)| format!("line {} of the patch: {why}", at + 1))?;
        sections.push(section);
        at = next;
    }
}

/// A section and the line after it, or a line and what is wrong with it.
fn section(lines: &[&str], head: usize) -> Result<(Section, usize), (usize, String)> {
    let line = lines[head];
    let body = head + 1;
    let end = body + lines[body..].iter().take_while(|line| !is_head(line)).count();
    if let Some(path) = line.strip_prefix(ADD) {
        let hunk = added(lines, body, end)?;
        return Ok((of(path, Action::Create, vec![hunk]), end));
    }
    if let Some(path) = line.strip_prefix(DELETE) {
        let stray = (body..end).find(|at| !lines[*at].trim().is_empty());
        return match stray {
            Some(at) => Err((at, "a file that is deleted has no lines".to_owned())),
            None => Ok((of(path, Action::Delete, Vec::new()), end)),
        };
    }
    let Some(path) = line.strip_prefix(UPDATE) else {
        return Err((head, format!("expected the head of a file or `{END}`, found: {line}")));
    };
    let target = lines.get(body).and_then(|line| line.strip_prefix(MOVE));
    let action = target.map_or(Action::Update, |to| Action::Move(PathBuf::from(to.trim_end())));
    let hunks = envelope_hunk::all(lines, body + usize::from(target.is_some()), end)?;
    if hunks.is_empty() && target.is_none() {
        return Err((head, "nothing is changed in this file".to_owned()));
    }
    Ok((of(path, action, hunks), end))
}

fn of(path: &str, action: Action, hunks: Vec<Hunk>) -> Section {
    Section { path: PathBuf::from(path.trim_end()), action, hunks, mode: None }
}

fn is_head(line: &str) -> bool {
    [ADD, DELETE, UPDATE].iter().any(|head| line.starts_with(head)) || line.trim_end() == END
}

fn added(lines: &[&str], body: usize, end: usize) -> Result<Hunk, (usize, String)> {
    let mut hunk = Hunk::default();
    for at in body..end {
        match Line::parse(lines[at]) {
            Some(line) if line.side == Side::New => hunk.lines.push(line),
            _ if lines[at..end].iter().all(|line| line.trim().is_empty()) => break,
            _ => return Err((at, "every line of a new file begins with `+`".to_owned())),
        }
    }
    Ok(hunk)
}
