//! Parses what a fenced block is: its kind, language, file and lines.

use super::Block;

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::terminal) enum BlockKind {
    Text,
    Code,
    Diff,
    Error,
    ToolOutput,
    Interactive,
}

impl BlockKind {
    pub(in crate::terminal) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Code => "code",
            Self::Diff => "diff",
            Self::Error => "error",
            Self::ToolOutput => "tool_output",
            Self::Interactive => "interactive",
        }
    }
}

/// The file and lines that a block refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::terminal) struct BlockMeta {
    /// The path of the file.
    pub(in crate::terminal) file: Option<String>,
    /// The lines of the file, such as `10-15`.
    pub(in crate::terminal) lines: Option<String>,
    /// True if the block can be run in a shell.
    pub(in crate::terminal) executable: bool,
}

/// A block, from the info string of its fence and its content.
pub(super) fn block(info: &str, content: String) -> Block {
    let mut words = info.split_whitespace();
    let (language, mut meta) = first_word(words.next().unwrap_or_default());
    words.for_each(|word| other_word(word, &mut meta));
    let language = language.map(|word| full_name(&word.to_lowercase()).to_owned());
    let kind = kind(language.as_deref(), &content);
    if kind == BlockKind::Diff {
        add_diff_info(&content, &mut meta);
    }
    meta.executable = kind == BlockKind::Code && language.as_deref().is_some_and(is_shell);
    let language =
        language.unwrap_or_else(|| if kind == BlockKind::Diff { "diff" } else { "text" }.into());
    Block { kind, language: Some(language), content, meta }
}

/// Parses the first word: a language, with or without a file (`rust`, `rust:src/a.rs`), or a file alone
/// (`10:15:src/a.rs`, `src/a.rs`).
fn first_word(word: &str) -> (Option<&str>, BlockMeta) {
    let mut meta = BlockMeta::default();
    let mut parts = word.splitn(3, ':');
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (from, Some(to), Some(file)) if is_number(from) && is_number(to) => {
            meta.file = Some(file.to_owned());
            meta.lines = Some(format!("{from}-{to}"));
            (language_of(file), meta)
        }
        (language, Some(_), _) => {
            other_word(&word[language.len() + 1..], &mut meta);
            (non_empty(language), meta)
        }
        (path, None, _) if path.contains(['/', '.']) => {
            other_word(path, &mut meta);
            (language_of(path), meta)
        }
        (language, None, _) => {
            (non_empty(language.trim_start_matches(['{', '.']).trim_end_matches('}')), meta)
        }
    }
}

/// Parses another word: `src/a.rs`, `src/a.rs:10-15`, `file=src/a.rs`, `title="src/a.rs"`, `lines=10-15`,
/// `{10-15}`.
fn other_word(word: &str, meta: &mut BlockMeta) {
    let (key, value) = word.split_once('=').unwrap_or(("file", word));
    let value = value.trim_matches(['"', '\'', '{', '}']);
    match key {
        "lines" | "line" => meta.lines = non_empty(value).map(Into::into),
        "file" | "filename" | "path" | "title" => match value.rsplit_once(':') {
            Some((file, lines)) if is_range(lines) => {
                (meta.file, meta.lines) = (non_empty(file).map(Into::into), Some(lines.into()));
            }
            _ if is_range(value) => meta.lines = Some(value.into()),
            _ if value.contains(['/', '.']) => meta.file = Some(value.into()),
            _ => {}
        },
        _ => {}
    }
}

fn kind(language: Option<&str>, content: &str) -> BlockKind {
    match language {
        Some("diff" | "patch") => BlockKind::Diff,
        Some("error" | "stderr" | "traceback" | "stacktrace") => BlockKind::Error,
        Some("output" | "stdout" | "tool_output") => BlockKind::ToolOutput,
        None | Some("text") if is_diff(content) => BlockKind::Diff,
        _ => BlockKind::Code,
    }
}

/// True if a text looks like a unified diff.
pub(in crate::terminal) fn is_diff(text: &str) -> bool {
    let has_line = |prefix: &str| text.lines().any(|line| line.starts_with(prefix));
    let has_mark = |mark: char| text.lines().any(|line| line.starts_with(mark));
    let count = text.lines().filter(|line| line.starts_with(['+', '-'])).count();
    (has_line("--- ") && has_line("+++ "))
        || has_line("@@ -")
        || (count > 2 && has_mark('+') && has_mark('-'))
}

/// Adds the file that a diff changes, and its new lines.
fn add_diff_info(content: &str, meta: &mut BlockMeta) {
    let file = content.lines().find_map(|line| line.strip_prefix("+++ "));
    let file = file.map(|file| file.split('\t').next().unwrap_or_default());
    let file = file.filter(|file| *file != "/dev/null");
    if let Some(file) = file.filter(|_| meta.file.is_none()) {
        meta.file = non_empty(file.strip_prefix("b/").unwrap_or(file)).map(Into::into);
    }
    if meta.lines.is_none() {
        meta.lines = content.lines().find_map(hunk_lines);
    }
}

/// The new lines of a hunk: `3-6` for `@@ -1,2 +3,4 @@`.
fn hunk_lines(line: &str) -> Option<String> {
    let after = line.strip_prefix("@@ -")?.split_once(" +")?.1;
    let range = after.split([' ', '@']).next()?;
    let (from, count) = range.split_once(',').unwrap_or((range, "1"));
    let (from, count): (u64, u64) = (from.parse().ok()?, count.parse().ok()?);
    Some(format!("{from}-{}", from.saturating_add(count.saturating_sub(1))))
}

fn full_name(language: &str) -> &str {
    match language {
        "rs" => "rust",
        "py" => "python",
        "js" => "javascript",
        "ts" => "typescript",
        "sh" | "shell" => "bash",
        "yml" => "yaml",
        other => other,
    }
}

fn language_of(file: &str) -> Option<&str> {
    file.rsplit_once('.').and_then(|(_, end)| non_empty(end)).filter(|end| !end.contains('/'))
}

fn is_shell(language: &str) -> bool {
    matches!(language, "bash" | "zsh" | "fish" | "console" | "shell-session")
}

fn is_range(text: &str) -> bool {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    is_number(from) && is_number(to)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
