//! The repository around a workspace, and the files that git has to read in it.
//!
//! If a workspace is a folder of a repository, or a worktree, git's own files are outside of it. Commands may read
//! them, or `git log` would not work there, but not write them: hooks and settings could make git run anything. A
//! workspace cannot choose what is opened for it: commands can write its `.git` file, so the repository that it
//! points to must point back.

use std::fs;
use std::path::{Path, PathBuf};

/// Files above the workspace that affect how git treats files in it.
const RULES: [&str; 2] = [".gitignore", ".gitattributes"];

/// Whether the workspace is a part of a repository.
pub(crate) fn is_around(workspace: &Path) -> bool {
    workspace.canonicalize().is_ok_and(|real| top(&real).is_some())
}

/// Where git keeps its files, by its mark in a folder; those of a worktree lie elsewhere.
pub(crate) fn marked_by(mark: &Path) -> Option<PathBuf> {
    if fs::metadata(mark).ok()?.is_dir() {
        return Some(mark.to_owned());
    }
    Some(mark.parent()?.join(link(mark, "gitdir:")?))
}

/// What git has to read outside of a workspace to know it.
pub(crate) fn readable(workspace: &Path) -> Vec<PathBuf> {
    let Ok(workspace) = workspace.canonicalize() else { return Vec::new() };
    let Some(top) = top(&workspace) else { return Vec::new() };
    let Some(mut found) = files_of(top, &workspace) else { return Vec::new() };
    let above = workspace.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
    let rules = above.flat_map(|folder| RULES.map(|name| folder.join(name)));
    found.extend(rules.filter(|file| fs::symlink_metadata(file).is_ok_and(|it| it.is_file())));
    found
}

/// The folder nearest to the workspace that has a mark of git.
fn top(workspace: &Path) -> Option<&Path> {
    workspace.ancestors().find(|folder| folder.join(".git").exists())
}

/// Git's own files; nothing if they are not what they should be.
fn files_of(top: &Path, workspace: &Path) -> Option<Vec<PathBuf>> {
    let mark = top.join(".git");
    let kind = fs::symlink_metadata(&mark).ok()?;
    if kind.is_dir() {
        return is_whole(&mark).then(|| vec![mark]);
    }
    let git = kind.is_file().then(|| marked_by(&mark))??.canonicalize().ok()?;
    // A `.git` inside the workspace is readable anyway, and is not followed: commands may have written it.
    if git.starts_with(workspace) {
        return None;
    }
    if is_module_of_what_is_around(&git, top) && is_whole(&git) {
        return Some(vec![mark, git]);
    }
    let common = git.join(link(&git.join("commondir"), "")?).canonicalize().ok()?;
    let back = git.join(link(&git.join("gitdir"), "")?).canonicalize().ok()?;
    let linked = back == mark && git.starts_with(common.join("worktrees")) && is_whole(&common);
    linked.then(|| vec![mark, common])
}

/// Whether these are the files of a submodule, which lie among those of the repository around it.
fn is_module_of_what_is_around(git: &Path, module: &Path) -> bool {
    let around = module.parent().and_then(top);
    let modules = around.map(|around| around.join(".git/modules"));
    modules.is_some_and(|modules| git.starts_with(modules))
}

/// Whether a folder has what every repository has.
fn is_whole(git: &Path) -> bool {
    git.join("HEAD").is_file() && git.join("objects").is_dir() && git.join("refs").is_dir()
}

/// The path that a small file of git's holds, after this word.
fn link(file: &Path, word: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    Some(PathBuf::from(text.strip_prefix(word)?.trim()))
}
