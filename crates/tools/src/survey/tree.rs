//! The files of a workspace, within its share of the budget.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::{show, tokens};

/// Room for the note of how many were left out.
const NOTE_CHARACTERS: usize = 40;

/// One path a line, in the order given, as many as there is room for.
pub(super) fn text(files: &[PathBuf], max_tokens: usize) -> String {
    let lines: Vec<_> = files.iter().map(|path| show::path(path) + "\n").collect();
    let room = tokens::bytes(max_tokens);
    if lines.iter().map(String::len).sum::<usize>() <= room {
        return lines.concat();
    }
    let Some(mut room) = room.checked_sub(NOTE_CHARACTERS) else { return String::new() };
    let turns = in_turns(files).into_iter();
    let fits =
        |at: &usize| room.checked_sub(lines[*at].len()).inspect(|left| room = *left).is_some();
    let mut shown: Vec<_> = turns.take_while(fits).collect();
    shown.sort_unstable();
    let mut text: String = shown.iter().map(|at| lines[*at].as_str()).collect();
    let left_out = files.len() - shown.len();
    let _infallible = writeln!(text, "[{} left out]", show::count(left_out, "more file"));
    text
}

/// The files in the order in which they are to be shown: one of each folder at the top, so that every
/// such folder is seen, then those at the top, then one of each folder again and again, those less
/// deep first.
fn in_turns(files: &[PathBuf]) -> Vec<usize> {
    let mut folders: BTreeMap<&OsStr, Vec<usize>> = BTreeMap::new();
    for (at, path) in files.iter().enumerate() {
        folders.entry(top(path)).or_default().push(at);
    }
    let (mut first, mut turns) = (Vec::new(), Vec::new());
    let top = folders.remove(OsStr::new("")).unwrap_or_default();
    for mut inside in folders.into_values() {
        inside.sort_by_key(|at| (depth(&files[*at]), *at));
        first.push(inside[0]);
        turns.extend(inside.into_iter().enumerate().skip(1));
    }
    turns.sort_by_key(|(turn, _)| *turn);
    first.into_iter().chain(top).chain(turns.into_iter().map(|(_, at)| at)).collect()
}

/// The folder at the top that a file is in.
fn top(path: &Path) -> &OsStr {
    if depth(path) > 1 { path.iter().next().unwrap_or_default() } else { OsStr::new("") }
}

fn depth(path: &Path) -> usize {
    path.iter().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_at_the_top_is_seen() {
        let mut files: Vec<_> = (10..40).map(|n| PathBuf::from(format!("a/b/c/{n}"))).collect();
        files.extend(["a/x1", "a/x2", "b/deep/er/1", "c/1", "z1", "z2"].map(PathBuf::from));
        let cases: [(usize, &[&str]); 6] = [
            (10, &[]),
            (12, &["a/x1"]),
            (15, &["a/x1", "b/deep/er/1"]),
            (16, &["a/x1", "b/deep/er/1", "c/1", "z1"]),
            (17, &["a/x1", "b/deep/er/1", "c/1", "z1", "z2"]),
            (19, &["a/x1", "a/x2", "b/deep/er/1", "c/1", "z1", "z2"]),
        ];
        for (max_tokens, shown) in cases {
            let note = format!("[{} more files left out]", files.len() - shown.len());
            let expected = [shown, &[&note]].concat();
            let got = text(&files, max_tokens);
            assert_eq!(got.lines().collect::<Vec<_>>(), expected, "{max_tokens}");
            assert!(tokens::count(&got) <= max_tokens);
        }
        assert_eq!(text(&files, 1000).lines().count(), files.len());
        assert_eq!((text(&files, 9), text(&[], 9)), (String::new(), String::new()));
    }
}
