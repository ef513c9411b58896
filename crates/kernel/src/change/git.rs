//! Which of git's own files a path is, by its name.
//!
//! They are recorded like all others. But some say nothing to a person, some are made anew by every
//! look that git takes, and what is only named by its content can never be in anybody's way.

use std::ffi::OsStr;
use std::path::Path;

/// What a file is to git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// Something that is named by what is in it: commits may share it, and nothing else depends on it.
    Object,
    /// What is staged, and what git remembers of the files' times.
    Index,
    /// Where branches were.
    Log,
    /// Something that is there while git works, or until it works again.
    Passing,
    /// Something that comes with every new repository.
    Sample,
    /// What counts: where branches are, settings, hooks, what is under way.
    State,
}

/// What a path is to git; nothing if it is not among git's own files.
pub fn own(path: &Path) -> Option<Own> {
    let could_be = |name: &OsStr| name == ".bare" || name.as_encoded_bytes().ends_with(b".git");
    if !path.iter().any(could_be) {
        return None;
    }
    let names: Vec<&str> = path.iter().map(|name| name.to_str().unwrap_or_default()).collect();
    let marked = names.iter().rposition(|name| matches!(*name, ".git" | ".bare"));
    if let Some(at) = marked {
        return Some(role(&names[at + 1..]));
    }
    // A folder of another name is taken for git's only where there can be no doubt.
    let bare = names.iter().position(|name| name.ends_with(".git"))?;
    matches!(&names[bare + 1..], ["objects", two, rest] if is_object(two, rest))
        .then_some(Own::Object)
}

/// What a path is to git, from the folder on in which git keeps its files.
pub fn own_within(path: &Path) -> Own {
    role(&path.iter().map(|name| name.to_str().unwrap_or_default()).collect::<Vec<_>>())
}

fn role(names: &[&str]) -> Own {
    match names {
        // Worktrees and submodules have files like those of the repository itself.
        ["worktrees", _, rest @ ..] if !rest.is_empty() => role(rest),
        ["modules", rest @ ..] if !rest.is_empty() => role(of_module(rest)),
        // What lies apart because it is large is named by its content too, whatever that ends in.
        ["lfs" | "annex", "objects", ..] => Own::Object,
        [.., last] if has_ending(last, "lock") => Own::Passing,
        ["objects", "info", "alternates" | "http-alternates"] => Own::State,
        ["objects", ..] => Own::Object,
        [name] if name.starts_with("sharedindex.") => Own::Object,
        ["index"] => Own::Index,
        // What was put aside before the last time is found here alone.
        ["logs", "refs", "stash"] => Own::State,
        ["logs", ..] => Own::Log,
        ["ORIG_HEAD" | "FETCH_HEAD" | "COMMIT_EDITMSG" | "AUTO_MERGE" | "gc.log" | "gc.pid"] => {
            Own::Passing
        }
        ["description"] => Own::Sample,
        ["hooks", name] if has_ending(name, "sample") => Own::Sample,
        _ => Own::State,
    }
}

/// The name of a module may be several folders deep.
fn of_module<'a, 'b>(names: &'a [&'b str]) -> &'a [&'b str] {
    let inner =
        ["objects", "lfs", "annex", "logs", "refs", "hooks", "info", "modules", "worktrees"];
    let folder = names.iter().skip(1).position(|name| inner.contains(name)).map(|at| at + 1);
    &names[folder.unwrap_or(names.len() - 1)..]
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|it| it == ending)
}

fn is_object(two: &str, rest: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    two.len() == 2 && matches!(rest.len(), 38 | 62) && is_hex(two) && is_hex(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_it_is_to_git() {
        let hex = "ab/cdef0123456789abcdef0123456789abcdef01";
        for (path, expected) in [
            ("src/index", None),
            (".gitignore", None),
            (".git", Some(Own::State)),
            (".git/HEAD", Some(Own::State)),
            (".git/index", Some(Own::Index)),
            ("sub/.git/index", Some(Own::Index)),
            (".git/index.lock", Some(Own::Passing)),
            (".git/refs/heads/x.lock", Some(Own::Passing)),
            (".git/refs/heads/index", Some(Own::State)),
            (".git/refs/heads/objects/x", Some(Own::State)),
            (".git/objects/pack/x.idx", Some(Own::Object)),
            (".git/objects/info/alternates", Some(Own::State)),
            (".git/lfs/objects/ab/cd/abcd", Some(Own::Object)),
            (".git/lfs/config", Some(Own::State)),
            (".git/modules/lib/lfs/objects/ab/cd/abcd", Some(Own::Object)),
            (".git/annex/objects/Kx/9z/SHA256E-s1--ab.lock", Some(Own::Object)),
            (".git/annex/index", Some(Own::State)),
            (".git/logs/HEAD", Some(Own::Log)),
            (".git/logs/refs/stash", Some(Own::State)),
            (".git/hooks/pre-commit", Some(Own::State)),
            (".git/hooks/pre-commit.sample", Some(Own::Sample)),
            (".git/worktrees/w/index", Some(Own::Index)),
            (".git/worktrees/w/logs/HEAD", Some(Own::Log)),
            (".git/worktrees/w", Some(Own::State)),
            (".git/modules/lib/x/index", Some(Own::Index)),
            (".git/modules/lib/x/objects/ab", Some(Own::Object)),
            (".git/modules/lib/x/HEAD", Some(Own::State)),
            (".bare/worktrees/w/ORIG_HEAD", Some(Own::Passing)),
            ("x.git/objects/main.c", None),
            (&format!("x.git/objects/{hex}"), Some(Own::Object)),
            ("x.git/logs/HEAD", None),
        ] {
            assert_eq!(own(Path::new(path)), expected, "{path}");
        }
    }
}
