//! Checks whether a task was solved: by its files, its output and words in the answer, never by
//! style.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::task::{Check, Task};

/// Folders whose content does not belong to a task.
const IGNORED: [&str; 3] = [".git", "__pycache__", ".pytest_cache"];

/// Files by path.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Creates a folder with the files of a task.
pub(super) fn put_files(task: &Task, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    task.files.keys().try_for_each(|path| put_file(task, folder, path))
}

/// Restores files that a model must not change.
pub(super) fn restore(task: &Task, folder: &Path) -> Result<()> {
    task.check.restore.iter().try_for_each(|path| put_file(task, folder, path))
}

fn put_file(task: &Task, folder: &Path, path: &str) -> Result<()> {
    let target = folder.join(path);
    fs::create_dir_all(target.parent().context("a file has a folder")?)?;
    fs::write(&target, &task.files[path]).with_context(|| target.display().to_string())
}

/// The files of a folder.
pub(super) fn fingerprint(folder: &Path) -> Result<Files> {
    let mut files = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in next.read_dir()? {
            let entry = entry?;
            if IGNORED.iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                let content = fs::read(entry.path()).unwrap_or_default();
                files.insert(entry.path().strip_prefix(folder)?.to_owned(), content);
            }
        }
    }
    Ok(files)
}

/// The problem with the files or the answer, if any.
pub(super) fn of_files(
    check: &Check,
    folder: &Path,
    before: &Files,
    answer: &str,
) -> Option<String> {
    let lacking = check.answer.iter().find(|words| !mentions_any(answer, words));
    if let Some(words) = lacking {
        return Some(format!("the answer lacks {words:?}"));
    }
    if check.unchanged && fingerprint(folder).ok().as_ref() != Some(before) {
        return Some("files were changed".into());
    }
    let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap_or_default();
    for (path, texts) in &check.contains {
        let content = read(path);
        if let Some(text) = texts.iter().find(|text| !content.contains(text.as_str())) {
            return Some(format!("{path} lacks {text:?}"));
        }
    }
    for (path, texts) in &check.lacks {
        let content = read(path);
        if let Some(text) = texts.iter().find(|text| content.contains(text.as_str())) {
            return Some(format!("{path} still has {text:?}"));
        }
    }
    let there = check.missing.iter().find(|path| folder.join(path).exists());
    there.map(|path| format!("{path} is there"))
}

/// The problem with the result of a check's command, if any.
pub(super) fn of_command(check: &Check, succeeded: bool, output: &str) -> Option<String> {
    if !succeeded {
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        return Some(format!("the check failed: {}", last.unwrap_or("no output")));
    }
    let lacking = check.output.iter().find(|text| !output.contains(text.as_str()));
    lacking.map(|text| format!("the output lacks {text:?}"))
}

fn mentions_any(answer: &str, words: &str) -> bool {
    words.split('|').any(|word| mentions(answer, word))
}

/// True if the text contains the word, and not as a part of another: 7 is not in 17, nor in 7.5.
fn mentions(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let inner = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts = word.chars().next().is_some_and(inner);
    let ends = word.chars().next_back().is_some_and(inner);
    text.match_indices(&word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        let (next, second) = (after.next(), after.next());
        let fraction = next == Some('.') && second.is_some_and(|digit| digit.is_ascii_digit());
        let apart = |letter: Option<char>| !letter.is_some_and(inner);
        (!starts || apart(before)) && (!ends || (apart(next) && !fraction))
    })
}

#[cfg(test)]
mod tests;
