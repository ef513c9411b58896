//! The hunks of an updated file in a `*** Begin Patch` patch.

use super::{Anchor, Hunk, Line, header};

const END_OF_FILE: &str = "*** End of File";

/// Reads all hunks in these lines; an error names the line that is wrong.
pub(super) fn all(lines: &[&str], body: usize, end: usize) -> Result<Vec<Hunk>, (usize, String)> {
    // Blank lines before the next header are only for readability.
    let blank = lines[body..end].iter().rev().take_while(|line| line.trim().is_empty()).count();
    let end = end - blank;
    let mut hunks = Vec::new();
    let (mut hunk, mut anchors) = (Hunk::default(), Vec::new());
    for (at, line) in lines.iter().enumerate().take(end).skip(body) {
        if line.trim_end() == END_OF_FILE {
            hunk.place = Anchor::End(std::mem::take(&mut anchors));
            close(&mut hunks, &mut hunk, &mut anchors);
        } else if line.starts_with("@@") {
            close(&mut hunks, &mut hunk, &mut anchors);
            match header::range(line) {
                Some(range) => hunk.place = Anchor::Line(range.start),
                None => anchors.extend(anchor(line)),
            }
        } else if line.starts_with('\\') {
            hunk.lines.last_mut().into_iter().for_each(|last| last.endless = true);
        } else {
            let parsed = Line::parse(line);
            let why = || (at, format!("a line begins with ` `, `+` or `-`, not: {line}"));
            hunk.lines.push(parsed.ok_or_else(why)?);
        }
    }
    close(&mut hunks, &mut hunk, &mut anchors);
    Ok(hunks)
}

/// Ends a hunk, if it has begun; otherwise its anchors are for what follows.
fn close(hunks: &mut Vec<Hunk>, hunk: &mut Hunk, anchors: &mut Vec<String>) {
    if hunk.lines.is_empty() {
        return;
    }
    let mut done = std::mem::take(hunk);
    let anchors = std::mem::take(anchors);
    if done.place == Anchor::Next && !anchors.is_empty() {
        done.place = Anchor::After(anchors);
    }
    hunks.push(done);
}

/// The line after `@@`, which the hunk comes after.
fn anchor(line: &str) -> Option<String> {
    let text = line[2..].trim_end();
    let text = text.strip_prefix(' ').unwrap_or(text);
    let text = text.strip_suffix(" @@").unwrap_or(text);
    (!text.trim().is_empty() && text.trim() != "@@").then(|| text.to_owned())
}
