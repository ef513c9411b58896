//! What git ignores: the rules of a folder and of those around it, read only where they are needed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fs, iter};

use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use super::snapshot::Stat;

/// The file with the rules of a folder.
pub(super) const FILE: &str = ".gitignore";

/// The rules that apply in a folder.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    outer: Option<Arc<IgnoreRules>>,
    folder: PathBuf,
    files: Vec<PathBuf>,
    /// The rules in `files`.
    own: OnceLock<Gitignore>,
}

impl IgnoreRules {
    /// The rules of a folder inside another.
    pub(super) fn within(outer: &Arc<Self>, folder: PathBuf) -> Arc<Self> {
        let files = vec![folder.join(FILE)];
        Arc::new(Self { outer: Some(outer.clone()), folder, files, own: OnceLock::new() })
    }

    /// The rules from outside a workspace, and the stats of the files with them.
    pub(super) fn outside(root: &Path) -> (Arc<Self>, Vec<Option<Stat>>) {
        let top = root.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(root);
        let mut files = Vec::from_iter(gitconfig_excludes_path());
        files.push(top.join(".git/info/exclude"));
        let folder = top.to_owned();
        let mut rules = Arc::new(Self { outer: None, folder, files, own: OnceLock::new() });
        let above = root.ancestors().skip(1).take_while(|folder| folder.starts_with(top));
        for folder in above.collect::<Vec<_>>().into_iter().rev() {
            rules = Self::within(&rules, folder.to_owned());
        }
        let chain = iter::successors(Some(&rules), |rules| rules.outer.as_ref());
        let stat = |file: &PathBuf| rustix::fs::stat(file).ok().map(|found| Stat::of(&found));
        let stats = chain.flat_map(|rules| &rules.files).map(stat).collect();
        (rules, stats)
    }

    /// True if git ignores what is at an absolute path.
    pub(super) fn ignore(&self, path: &Path, is_folder: bool) -> bool {
        let own = self.own.get_or_init(|| read(&self.folder, &self.files));
        let found = own.matched(path, is_folder);
        let outer = || self.outer.as_ref().is_some_and(|outer| outer.ignore(path, is_folder));
        if found.is_none() { outer() } else { found.is_ignore() }
    }
}

fn read(folder: &Path, files: &[PathBuf]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for file in files.iter().filter(|file| fs::metadata(file).is_ok_and(|found| found.is_file())) {
        // Invalid lines are left out.
        let _errors = builder.add(file);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
