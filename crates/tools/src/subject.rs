//! What a call about files is about, as rules and remembered answers see it.

use std::path::{Component, Path, PathBuf};

use quintet_kernel::tool::CallSubject;

use crate::confined_fs;

/// What calls have in common that touch the same folder.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileAccess {
    Changes,
    Reads,
    /// Looks into a folder and whatever is below it.
    Looks,
}

/// The subject of a call that names these paths.
pub(crate) fn of<'a>(
    root: &Path,
    deed: FileAccess,
    named: impl IntoIterator<Item = &'a Path>,
) -> CallSubject {
    let (mut paths, mut folders) = (Vec::new(), Vec::new());
    for path in named {
        let names = names(root, path);
        folders.extend(names.last().map(|name| match deed {
            FileAccess::Looks => PathBuf::from(name),
            FileAccess::Changes | FileAccess::Reads => {
                Path::new(name).parent().unwrap_or(Path::new("")).into()
            }
        }));
        paths.extend(names);
    }
    paths.sort_unstable();
    paths.dedup();
    let similar = common(&folders).map(|folder| deed.describe(&folder));
    CallSubject { paths, similar, ..CallSubject::default() }
}

/// The same, off the threads that must not wait for a disk.
pub(crate) async fn looked_up(root: &Path, deed: FileAccess, named: Vec<PathBuf>) -> CallSubject {
    let root = root.to_owned();
    let work = move || of(&root, deed, named.iter().map(PathBuf::as_path));
    tokio::task::spawn_blocking(work).await.unwrap_or_default()
}

/// The names of a path: as it was given and, if that is another, as it really is. A rule about either
/// is about the call.
fn names(root: &Path, path: &Path) -> Vec<String> {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut names = vec![text(&plain(root, path))];
    // Where links lead out of the workspace the call will fail anyway.
    let real = confined_fs::real(root, path).ok().map(|real| text(&real));
    names.extend(real.filter(|real| *real != names[0]));
    names
}

/// A path from the workspace on, without `.` and `..`; the whole path if it leads out.
fn plain(root: &Path, path: &Path) -> PathBuf {
    let whole = folded(&root.join(path));
    let inside = |root: &Path| whole.strip_prefix(root).map(Path::to_owned).ok();
    let real = || inside(&root.canonicalize().ok()?);
    inside(&folded(root)).or_else(real).unwrap_or(whole)
}

fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => folded.push(part),
        }
    }
    folded
}

/// The folder that all of them are in.
fn common(folders: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = folders.split_first()?;
    let shared = |a: PathBuf, b: &PathBuf| {
        a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    };
    Some(rest.iter().fold(first.clone(), shared))
}

impl FileAccess {
    /// In words for people that stay the same, because answers are remembered by them.
    fn describe(self, folder: &Path) -> String {
        let verb = match self {
            Self::Changes => "changes files in",
            Self::Reads => "reads files in",
            Self::Looks => "looks into",
        };
        match folder.to_string_lossy() {
            folder if folder.is_empty() => format!("{verb} the workspace's top folder"),
            folder => format!("{verb} {}/", folder.trim_end_matches('/')),
        }
    }
}
