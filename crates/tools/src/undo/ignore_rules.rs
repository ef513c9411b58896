//! What git ignores: the rules of a folder and of those around it, read only where they are needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, CWD, statat};

use super::snapshot::Stat;

/// The file with a folder's rules.
pub(super) const FILE: &str = ".gitignore";

/// The rules that count in a folder.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    around: Option<Arc<IgnoreRules>>,
    /// Where the rules count, and the files that they are in.
    folder: PathBuf,
    files: Vec<PathBuf>,
    own: OnceLock<Gitignore>,
}

impl IgnoreRules {
    /// The rules of a folder inside of another.
    pub(super) fn within(around: &Arc<Self>, folder: PathBuf) -> Arc<Self> {
        let files = vec![folder.join(FILE)];
        Arc::new(Self { around: Some(around.clone()), folder, files, own: OnceLock::new() })
    }

    /// The rules from outside of a workspace, and the state of the files that they are in.
    pub(super) fn outside(root: &Path) -> (Arc<Self>, Vec<Option<Stat>>) {
        let top = root.ancestors().find(|folder| folder.join(".git").exists());
        let global = ignore::gitignore::gitconfig_excludes_path();
        let (top, mut files) = (top.unwrap_or(root), Vec::from_iter(global));
        files.push(top.join(".git/info/exclude"));
        let mut chain =
            Arc::new(Self { around: None, folder: top.into(), files, own: OnceLock::new() });
        let mut above: Vec<_> =
            root.ancestors().skip(1).take_while(|it| it.starts_with(top)).collect();
        above.reverse();
        let mut all = chain.files.clone();
        for folder in above {
            chain = Self::within(&chain, folder.to_owned());
            all.extend(chain.files.iter().cloned());
        }
        let stat =
            |file: &PathBuf| statat(CWD, file, AtFlags::empty()).ok().map(|it| Stat::of(&it));
        (chain, all.iter().map(stat).collect())
    }

    /// True if git ignores what is at an absolute path.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let own = self.own.get_or_init(|| read(&self.folder, &self.files));
        let verdict = own.matched(path, is_folder);
        match &self.around {
            _ if !verdict.is_none() => verdict.is_ignore(),
            Some(around) => around.ignore(path, is_folder),
            None => false,
        }
    }
}

fn read(folder: &Path, files: &[PathBuf]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for file in files.iter().filter(|file| fs::metadata(file).is_ok_and(|found| found.is_file())) {
        // A line that cannot be understood is left out.
        let _errors = builder.add(file);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
