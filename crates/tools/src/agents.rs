//! `AGENTS.md`: instructions for agents in a workspace.
//!
//! A file applies to its folder and everything below. The files of the workspace are used, and those of the folders
//! above it up to the root of its repository. Links that lead out of the workspace or the repository are not
//! followed.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{confined_fs, show};

mod commands;

pub(crate) use commands::verify_commands;

/// The name of such a file.
pub(crate) const NAME: &str = "AGENTS.md";
/// How much of one is read.
const MOST_BYTES: u64 = 64 * 1024;
/// How many in folders of the workspace are read.
const NESTED_LIMIT: usize = 64;
const NEAREST_WINS: &str = "Each part below speaks for one folder and all in it. Where two \
                            disagree, the one nearest to the file at hand counts.\n";

/// One such file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The folder it applies to, relative to the workspace: `.`, `crates/tools`, `../..`.
    pub(crate) scope: PathBuf,
    pub(crate) text: String,
}

/// The notices for all of the workspace: the outermost first, its own last.
pub(crate) fn around(workspace: &Path) -> Vec<Notice> {
    let own = confined_fs::open(workspace, NAME.as_ref()).ok().and_then(|file| notice(file, "."));
    outer(workspace).into_iter().chain(own).collect()
}

/// The notices for folders of the workspace, given its files.
pub(crate) fn nested(workspace: &Path, files: &[PathBuf]) -> Vec<Notice> {
    let named = files.iter().filter(|path| path.ends_with(NAME) && **path != Path::new(NAME));
    let read = |path: &PathBuf| {
        let file = confined_fs::open(workspace, path).ok()?;
        notice(file, path.parent()?)
    };
    named.take(NESTED_LIMIT).filter_map(read).collect()
}

/// The notices of the folders around the workspace.
fn outer(workspace: &Path) -> Vec<Notice> {
    let Ok(inner) = workspace.canonicalize() else { return Vec::new() };
    let Some(root) = inner.ancestors().find(|folder| folder.join(".git").exists()) else {
        return Vec::new();
    };
    let folders = inner.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    let mut notices: Vec<_> = folders
        .enumerate()
        .filter_map(|(up, folder)| {
            let file = confined_fs::open(root, &folder.join(NAME)).ok()?;
            notice(file, [".."].repeat(up + 1).join("/"))
        })
        .collect();
    notices.reverse();
    notices
}

fn notice(file: File, scope: impl Into<PathBuf>) -> Option<Notice> {
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    let mut text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    if size > MOST_BYTES {
        let _infallible = write!(text, "\n[{} more bytes left out]", size - MOST_BYTES);
    }
    (!text.is_empty()).then(|| Notice { scope: scope.into(), text })
}

/// Joins notices into one text. A single notice of the workspace itself gets no heading.
pub(crate) fn text(notices: &[Notice]) -> String {
    match notices {
        [] => String::new(),
        [only] if only.scope == Path::new(".") => only.text.clone() + "\n",
        several => several.iter().fold(NEAREST_WINS.to_owned(), |text, notice| {
            let scope = show::path(&notice.scope);
            format!("{text}\nFor {scope}, from {}:\n{}\n", from(&notice.scope), notice.text)
        }),
    }
}

fn from(scope: &Path) -> String {
    show::path(scope.strip_prefix(".").unwrap_or(scope).join(NAME).as_path())
}
