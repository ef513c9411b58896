//! Makes an edit of code that a model only showed: a small model asked for a change often answers with the
//! right code in a fence and leaves it at that.

use quintet_kernel::model::RawToolCall;
use serde_json::json;

use super::request::Request;

const FENCE: &str = "```";

/// The change that the code in an answer means, if it is clear which: the code begins like a part of a file
/// that the model has seen.
pub(crate) fn shown_edit(request: &Request, answer: &str) -> Option<RawToolCall> {
    let blocks = blocks(answer);
    let edits = blocks.iter().flat_map(|block| {
        request.files.iter().filter_map(|(path, content)| edit(path, content, block))
    });
    let edits: Vec<RawToolCall> = edits.collect();
    // The last block is the result, if there are several.
    let same_file = edits.iter().all(|edit| edit.id == edits[0].id);
    edits
        .into_iter()
        .next_back()
        .filter(|_| same_file)
        .map(|edit| RawToolCall { id: String::new(), ..edit })
}

/// The texts in fences.
fn blocks(answer: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<Vec<&str>> = None;
    for line in answer.lines() {
        match (&mut open, line.trim_start().starts_with(FENCE)) {
            (None, true) => open = Some(Vec::new()),
            (None, false) => {}
            (Some(lines), true) => {
                blocks.push(lines.join("\n"));
                open = None;
            }
            (Some(lines), false) => lines.push(line),
        }
    }
    blocks
}

/// The edit of one file that a block means. The path stands in the id until it is chosen.
fn edit(path: &str, content: &str, block: &str) -> Option<RawToolCall> {
    let block = block.trim_matches('\n').trim_end();
    let first = block.lines().next()?;
    let lines: Vec<&str> = content.lines().collect();
    // All of the file: its first line, and most of the others.
    let kept = lines.iter().filter(|line| !line.trim().is_empty());
    let (mut all, mut same) = (0, 0);
    for line in kept {
        all += 1;
        same += usize::from(block.lines().any(|other| other == *line));
    }
    let (tool, input) = if lines.first() == Some(&first) && same * 2 >= all && all > 1 {
        ("write_file", json!({ "path": path, "content": format!("{block}\n") }))
    } else {
        let head = head(first)?;
        let mut starts = (0..lines.len()).filter(|&n| lines[n].trim().starts_with(head));
        let (start, None) = (starts.next()?, starts.next()) else { return None };
        let old = lines[start..=end_of(&lines, start)].join("\n");
        let new = super::repair::indented(block, indent(first), indent(lines[start]));
        if old == new {
            return None;
        }
        ("edit_file", json!({ "path": path, "old": old, "new": new }))
    };
    Some(RawToolCall { id: path.into(), tool: tool.into(), arguments: input.to_string() })
}

/// What the first line of a definition begins with, up to its parameters: `def add(`.
pub(super) fn head(line: &str) -> Option<&str> {
    const WORDS: [&str; 12] = [
        "def ",
        "class ",
        "async def ",
        "fn ",
        "pub fn ",
        "function ",
        "async function ",
        "export function ",
        "func ",
        "struct ",
        "pub struct ",
        "impl ",
    ];
    let line = line.trim();
    WORDS.iter().any(|word| line.starts_with(word)).then(|| {
        let end = line.find(['(', ':', '{', '<']).map_or(line.len(), |at| at + 1);
        line[..end].trim_end_matches([':', '{', '<'])
    })
}

/// The last line of the definition that begins at a line: what is indented deeper, and a closing brace.
pub(super) fn end_of(lines: &[&str], start: usize) -> usize {
    let depth = indent(lines[start]).len();
    let mut end = start;
    for (n, line) in lines.iter().enumerate().skip(start + 1) {
        if line.trim().is_empty() {
            continue;
        }
        let closes = indent(line).len() == depth && line.trim_start().starts_with(['}', ')']);
        if indent(line).len() <= depth && !closes {
            break;
        }
        end = n;
    }
    end
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

#[cfg(test)]
mod tests;
