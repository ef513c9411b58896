//! Paths in a command that lead out of the workspace, judged from their text.

use std::path::{Component, Path};

/// Paths that are not reported, because they are harmless or private to the command.
const NOTHING: [&str; 5] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// The arguments that name something outside of the workspace. A program may be anywhere.
pub(super) fn paths(workspace: &Path, words: &[String]) -> Vec<String> {
    let arguments = words.get(1..).unwrap_or_default();
    let paths = arguments.iter().map(|word| path(word));
    paths.filter(|path| leads_out(workspace, path)).map(str::to_owned).collect()
}

/// A word without a redirection or an option name before a path.
fn path(word: &str) -> &str {
    let word = word.trim_start_matches(['<', '>']);
    let value = word.split_once('=').map(|(_, value)| value);
    value.filter(|value| value.starts_with(['/', '~', '.'])).unwrap_or(word)
}

fn leads_out(workspace: &Path, path: &str) -> bool {
    if path.starts_with('~') || path.starts_with("$HOME") || path.starts_with("${HOME}") {
        return true;
    }
    if path.starts_with('/') {
        return !NOTHING.contains(&path) && !is_inside(workspace, path);
    }
    depths(Path::new(path)).any(|depth| depth < 0)
}

fn is_inside(workspace: &Path, path: &str) -> bool {
    let inside = Path::new(path).strip_prefix(workspace);
    inside.is_ok_and(|rest| depths(rest).all(|depth| depth >= 0))
}

/// How deep each part of a relative path leads.
fn depths(path: &Path) -> impl Iterator<Item = i64> {
    path.components().scan(0, |depth, part| {
        *depth += match part {
            Component::Normal(_) => 1,
            Component::ParentDir => -1,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => 0,
        };
        Some(*depth)
    })
}
