//! Parses unified diffs of git and `diff -u`, and the approximate ones of models.
//!
//! The counts in a hunk header are used as far as the lines match them: they distinguish a removed line that begins
//! with `-- ` from the header of the next file. Wrong counts are tolerated.

use std::path::PathBuf;

use super::header::{self, HunkRange};
use super::{Action, Anchor, Hunk, Line, Section, Side};

/// The header of a file, before its hunks.
#[derive(Debug, Default)]
struct Head {
    git: Option<(String, String)>,
    names: Option<(String, String)>,
    rename: (Option<PathBuf>, Option<PathBuf>),
    created: bool,
    deleted: bool,
    mode: Option<u32>,
}

/// Reads all of it.
pub(super) fn parse(lines: &[&str]) -> Result<Vec<Section>, String> {
    let mut sections = Vec::new();
    let (mut head, mut hunks) = (Head::default(), Vec::new());
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            finish(&mut sections, &mut head, &mut hunks)?;
            head.git = header::git_names(rest);
            at += 1;
        } else if is_file_head(lines, at) {
            if head.names.is_some() {
                finish(&mut sections, &mut head, &mut hunks)?;
            }
            head.names = Some((header::name(&line[4..]), header::name(&lines[at + 1][4..])));
            at += 2;
        } else if line.starts_with("@@") {
            if head.names.is_none() {
                return Err(format!("line {} of the patch: a hunk before any file name", at + 1));
            }
            let (hunk, next) = hunk(lines, at);
            hunks.push(hunk);
            at = next;
        } else {
            head.note(line).map_err(|why| format!("line {} of the patch: {why}", at + 1))?;
            at += 1;
        }
    }
    finish(&mut sections, &mut head, &mut hunks)?;
    Ok(sections)
}

fn is_file_head(lines: &[&str], at: usize) -> bool {
    starts(lines, at, "--- ") && starts(lines, at + 1, "+++ ")
}

fn starts(lines: &[&str], at: usize, with: &str) -> bool {
    lines.get(at).is_some_and(|line| line.starts_with(with))
}

impl Head {
    /// Takes note of a line that is neither a name nor part of a hunk.
    fn note(&mut self, line: &str) -> Result<(), String> {
        let path = |rest: &str| Some(PathBuf::from(header::name(rest)));
        if let Some(rest) = line.strip_prefix("rename from ") {
            self.rename.0 = path(rest);
        } else if let Some(rest) = line.strip_prefix("rename to ") {
            self.rename.1 = path(rest);
        } else if let Some(rest) = line.strip_prefix("new file mode ") {
            self.created = true;
            // Git only sets whether a file is executable; the rest follows the user's mask.
            self.mode = header::mode(rest).filter(|mode| mode & 0o100 != 0);
        } else if let Some(rest) = line.strip_prefix("new mode ") {
            self.mode = header::mode(rest);
        } else if line.starts_with("deleted file mode ") {
            self.deleted = true;
        } else if line.starts_with("copy from ") {
            return Err("copies are not supported; create the file instead".to_owned());
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err("binary files cannot be patched".to_owned());
        } else if line.starts_with(['+', '-']) && line.trim_end() != "--" {
            return Err(format!("this line belongs to no hunk: {line}"));
        }
        Ok(())
    }
}

/// Turns what was read of a file into a section.
fn finish(
    sections: &mut Vec<Section>,
    head: &mut Head,
    hunks: &mut Vec<Hunk>,
) -> Result<(), String> {
    let (head, hunks) = (std::mem::take(head), std::mem::take(hunks));
    let Some((old, new)) = head.names.or(head.git) else {
        return match head.rename {
            (Some(from), Some(to)) => {
                let action = Action::Move(to);
                sections.push(Section { path: from, action, hunks, mode: head.mode });
                Ok(())
            }
            _ => Ok(()),
        };
    };
    let (path, action) = match (header::stripped(&old, &new), head.rename) {
        (_, (Some(from), Some(to))) => (from, Action::Move(to)),
        ((Some(old), _), _) if head.deleted => (old, Action::Delete),
        ((_, Some(new)), _) if head.created => (new, Action::Create),
        ((Some(old), None), _) => (old, Action::Delete),
        ((None, Some(new)), _) => (new, Action::Create),
        ((Some(old), Some(new)), _) if old == new => (new, Action::Update),
        ((Some(_), Some(_)), _) => {
            return Err(format!(
                "the patch names two files, {old} and {new}; to move one use `rename from` and \
                 `rename to` lines"
            ));
        }
        ((None, None), _) => return Err("the patch names no file but /dev/null".to_owned()),
    };
    sections.push(Section { path, action, hunks, mode: head.mode });
    Ok(())
}

/// Reads a hunk; returns it and where it ends.
fn hunk(lines: &[&str], head: usize) -> (Hunk, usize) {
    let range = header::range(lines[head]);
    let place = range.map_or(Anchor::Next, |range| Anchor::Line(range.start));
    let HunkRange { mut old, mut new, .. } =
        range.unwrap_or(HunkRange { start: 0, old: 0, new: 0 });
    let mut hunk = Hunk { place, lines: Vec::new() };
    let mut at = head + 1;
    while let Some(line) = lines.get(at) {
        if line.starts_with('\\') {
            hunk.lines.last_mut().into_iter().for_each(|last| last.endless = true);
            at += 1;
            continue;
        }
        let counted = old > 0 || new > 0;
        if !counted && is_end(lines, at, range.is_some()) {
            break;
        }
        // A hunk that promised too much ends where another file and its first hunk begin, unless
        // just these two lines were still to come.
        let another = is_file_head(lines, at) && starts(lines, at + 2, "@@");
        if counted && another && (old, new) != (1, 1) {
            break;
        }
        let Some(line) = Line::parse(line) else { break };
        old = old.saturating_sub(usize::from(line.side != Side::New));
        new = new.saturating_sub(usize::from(line.side != Side::Old));
        hunk.lines.push(line);
        at += 1;
    }
    (hunk, at)
}

/// Whether a hunk that has all the lines it promised, or promised none, ends here.
fn is_end(lines: &[&str], at: usize, promised: bool) -> bool {
    let line = lines[at];
    let rest_is_blank = || lines[at..].iter().all(|line| line.trim().is_empty());
    let next_is_head = || {
        let next = lines[at..].iter().find(|line| !line.trim().is_empty());
        next.is_some_and(|next| next.starts_with("diff ") || next.starts_with("--- "))
    };
    let blank = line.is_empty() && (promised || rest_is_blank() || next_is_head());
    // `-- ` is where the signature of a mailed patch begins.
    blank || line == "-- " || is_file_head(lines, at)
}
