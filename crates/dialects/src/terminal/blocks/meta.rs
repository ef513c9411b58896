//! What a fenced block is: its kind, its language, the file and the lines it is about.

use super::Block;

/// What a block is to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::terminal) enum Kind {
    Text,
    Code,
    Diff,
    Error,
    ToolOutput,
    Interactive,
}

impl Kind {
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

/// What a block is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::terminal) struct Meta {
    /// The file.
    pub(in crate::terminal) file: Option<String>,
    /// The lines of it, `10-15`.
    pub(in crate::terminal) lines: Option<String>,
    /// True if it could be typed into a shell.
    pub(in crate::terminal) executable: bool,
}

/// A block by what stands behind its fence and what is in it.
pub(super) fn block(info: &str, content: String) -> Block {
    let mut words = info.split_whitespace();
    let (language, mut meta) = first_word(words.next().unwrap_or_default());
    words.for_each(|word| more(word, &mut meta));
    let language = language.map(|word| full_name(&word.to_lowercase()).to_owned());
    let kind = kind(language.as_deref(), &content);
    if kind == Kind::Diff {
        of_diff(&content, &mut meta);
    }
    meta.executable = kind == Kind::Code && language.as_deref().is_some_and(is_shell);
    let language =
        language.unwrap_or_else(|| if kind == Kind::Diff { "diff" } else { "text" }.into());
    Block { kind, language: Some(language), content, meta }
}

/// The first word is a language, with a file behind it or not: `rust`, `rust:src/a.rs`, or a place
/// alone: `10:15:src/a.rs`, `src/a.rs`.
fn first_word(word: &str) -> (Option<&str>, Meta) {
    let mut meta = Meta::default();
    let mut parts = word.splitn(3, ':');
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (from, Some(to), Some(file)) if is_number(from) && is_number(to) => {
            meta.file = Some(file.to_owned());
            meta.lines = Some(format!("{from}-{to}"));
            (language_of(file), meta)
        }
        (language, Some(_), _) => {
            more(&word[language.len() + 1..], &mut meta);
            (some(language), meta)
        }
        (path, None, _) if path.contains(['/', '.']) => {
            more(path, &mut meta);
            (language_of(path), meta)
        }
        (language, None, _) => {
            (some(language.trim_start_matches(['{', '.']).trim_end_matches('}')), meta)
        }
    }
}

/// `src/a.rs`, `src/a.rs:10-15`, `file=src/a.rs`, `title="src/a.rs"`, `lines=10-15`, `{10-15}`.
fn more(word: &str, meta: &mut Meta) {
    let (key, value) = word.split_once('=').unwrap_or(("file", word));
    let value = value.trim_matches(['"', '\'', '{', '}']);
    match key {
        "lines" | "line" => meta.lines = some(value).map(Into::into),
        "file" | "filename" | "path" | "title" => match value.rsplit_once(':') {
            Some((file, lines)) if is_range(lines) => {
                (meta.file, meta.lines) = (some(file).map(Into::into), Some(lines.into()));
            }
            _ if is_range(value) => meta.lines = Some(value.into()),
            _ if value.contains(['/', '.']) => meta.file = Some(value.into()),
            _ => {}
        },
        _ => {}
    }
}

fn kind(language: Option<&str>, content: &str) -> Kind {
    match language {
        Some("diff" | "patch") => Kind::Diff,
        Some("error" | "stderr" | "traceback" | "stacktrace") => Kind::Error,
        Some("output" | "stdout" | "tool_output") => Kind::ToolOutput,
        None | Some("text") if is_diff(content) => Kind::Diff,
        _ => Kind::Code,
    }
}

/// True if a text reads like a unified diff.
pub(in crate::terminal) fn is_diff(text: &str) -> bool {
    let begins = |with: &str| text.lines().any(|line| line.starts_with(with));
    let changed = |mark: char| text.lines().any(|line| line.starts_with(mark));
    let count = text.lines().filter(|line| line.starts_with(['+', '-'])).count();
    (begins("--- ") && begins("+++ "))
        || begins("@@ -")
        || (count > 2 && changed('+') && changed('-'))
}

/// The file that a diff changes, and the lines it makes of it.
fn of_diff(content: &str, meta: &mut Meta) {
    let file = content.lines().find_map(|line| line.strip_prefix("+++ "));
    let file = file.map(|file| file.split('\t').next().unwrap_or_default());
    let file = file.filter(|file| *file != "/dev/null");
    if let Some(file) = file.filter(|_| meta.file.is_none()) {
        meta.file = some(file.strip_prefix("b/").unwrap_or(file)).map(Into::into);
    }
    if meta.lines.is_none() {
        meta.lines = content.lines().find_map(hunk);
    }
}

/// `@@ -1,2 +3,4 @@` is about lines 3-6.
fn hunk(line: &str) -> Option<String> {
    let after = line.strip_prefix("@@ -")?.split_once(" +")?.1;
    let place = after.split([' ', '@']).next()?;
    let (from, count) = place.split_once(',').unwrap_or((place, "1"));
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
    file.rsplit_once('.').and_then(|(_, end)| some(end)).filter(|end| !end.contains('/'))
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

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
