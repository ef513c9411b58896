//! Converts code in an answer to an edit: a small model that should change a file often only shows
//! the right code in a fence.

use quintet_kernel::model::RawToolCall;
use serde_json::json;

use super::request::Request;

const FENCE: &str = "```";

/// The edit that the code in an answer stands for, if it is unambiguous: the code begins like a
/// part of a file that the model has read.
pub(crate) fn shown_edit(request: &Request, answer: &str) -> Option<RawToolCall> {
    let blocks = blocks(answer);
    let edits = blocks.iter().flat_map(|block| {
        request.files.iter().filter_map(|(path, content)| edit(path, content, block))
    });
    let edits: Vec<RawToolCall> = edits.collect();
    // If there are several blocks, the last one is the result.
    let same_file = edits.iter().all(|edit| edit.id == edits[0].id);
    edits
        .into_iter()
        .next_back()
        .filter(|_| same_file)
        .map(|edit| RawToolCall { id: String::new(), ..edit })
}

/// The contents of the fences.
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

/// The edit of one file that a block stands for. The id holds the path until a file is chosen.
fn edit(path: &str, content: &str, block: &str) -> Option<RawToolCall> {
    let block = block.trim_matches('\n').trim_end();
    let (tool, input) = if is_whole_file(content, block) {
        ("write_file", json!({ "path": path, "content": format!("{block}\n") }))
    } else {
        let (imports, changes) = parts(content, block);
        match (&imports[..], &changes[..]) {
            ([], []) => return None,
            ([], [(old, new)]) => ("edit_file", json!({ "path": path, "old": old, "new": new })),
            _ => {
                let changed = changes.iter().fold(content.to_owned(), |content, (old, new)| {
                    content.replacen(old.as_str(), new, 1)
                });
                ("write_file", json!({ "path": path, "content": with_imports(&changed, &imports) }))
            }
        }
    };
    Some(RawToolCall { id: path.into(), tool: tool.into(), arguments: input.to_string() })
}

/// True if a block is a whole file: it has most of the file's lines, begins with its first line or
/// an import, and ends with its last.
fn is_whole_file(content: &str, block: &str) -> bool {
    let lines: Vec<&str> = content.lines().filter(|line| !line.trim().is_empty()).collect();
    let in_block = |line: &&&str| block.lines().any(|other| other == **line);
    let same = lines.iter().filter(in_block).count();
    let first = block.lines().next();
    let begins = first == lines.first().copied() || first.is_some_and(is_import);
    let ends = lines.last().is_some_and(|last| in_block(&last)) || same * 4 >= lines.len() * 3;
    lines.len() > 1 && same * 2 >= lines.len() && begins && ends && content.trim_end() != block
}

/// The imports of a block that the file lacks, and pairs of definitions that differ: as in the file
/// and as in the block.
fn parts<'b>(content: &str, block: &'b str) -> (Vec<&'b str>, Vec<(String, String)>) {
    let lines: Vec<&str> = content.lines().collect();
    let shown: Vec<&str> = block.lines().collect();
    let lacks = |line: &&str| is_import(line) && !lines.contains(line);
    let imports: Vec<&str> = shown.iter().copied().filter(lacks).collect();
    let mut changes: Vec<(String, String)> = Vec::new();
    // Imports alone do not make a block an edit of a file.
    let mut is_about = false;
    let mut at = 0;
    while at < shown.len() {
        let end = end_of(&shown, at);
        if let Some((old, new)) =
            head(shown[at]).and_then(|head| counterpart(&lines, head, &shown[at..=end]))
        {
            is_about = true;
            changes.extend((old != new).then_some((old, new)));
        }
        at = end + 1;
    }
    (if is_about { imports } else { Vec::new() }, changes)
}

/// The definition with this head in a file, and its replacement.
fn counterpart(lines: &[&str], head: &str, shown: &[&str]) -> Option<(String, String)> {
    let mut starts = (0..lines.len()).filter(|&n| lines[n].trim().starts_with(head));
    let (start, None) = (starts.next()?, starts.next()) else { return None };
    let old = lines[start..=end_of(lines, start)].join("\n");
    let new = super::repair::indented(&shown.join("\n"), indent(shown[0]), indent(lines[start]));
    Some((old, new))
}

/// True for a line that imports something.
pub(super) fn is_import(line: &str) -> bool {
    line.starts_with("import ") || (line.starts_with("from ") && line.contains(" import "))
}

/// A file with imports added at its top, after a `#!` line.
pub(super) fn with_imports(content: &str, imports: &[&str]) -> String {
    if imports.is_empty() {
        return content.to_owned();
    }
    let imports = imports.join("\n");
    let shebang = content.lines().next().filter(|line| line.starts_with("#!"));
    let (first, rest) =
        content.split_at(shebang.map_or(0, |line| line.len() + 1).min(content.len()));
    let gap = if rest.lines().next().is_some_and(is_import) { "\n" } else { "\n\n" };
    format!("{first}{imports}{gap}{rest}")
}

/// The beginning of a definition's first line, up to its parameters: `def add(`.
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

/// The last line of the definition that starts at a line: deeper indented lines, and a closing
/// brace.
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
