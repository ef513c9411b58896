//! Files with several names: who writes by one of them changes what the others show.
//!
//! The names are looked for, in the whole workspace, only once such a file is written in place.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::keeper::identity;
use super::log::Identity;

/// The names of files that have several.
#[derive(Debug)]
pub(super) struct Links {
    root: PathBuf,
    /// Nothing until somebody asks.
    names: Option<HashMap<Identity, Vec<PathBuf>>>,
}

impl Links {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, names: None }
    }

    /// The names of a file beside this one.
    pub(super) fn others(&mut self, file: Identity, name: &Path) -> Vec<PathBuf> {
        let root = &self.root;
        let names = self.names.get_or_insert_with(|| gather(root));
        let is_one = |path: &&PathBuf| {
            let found = root.join(path).symlink_metadata();
            **path != name && found.is_ok_and(|found| identity(&found) == file)
        };
        names.get(&file).into_iter().flatten().filter(is_one).cloned().collect()
    }

    /// A file has these names now.
    pub(super) fn add(&mut self, file: Identity, names: [&Path; 2]) {
        // Whoever has not looked yet will find them.
        let Some(known) = &mut self.names else { return };
        let known = known.entry(file).or_default();
        for name in names {
            if !known.iter().any(|other| other == name) {
                known.push(name.to_owned());
            }
        }
    }

    /// Names have become others.
    pub(super) fn forget(&mut self) {
        self.names = None;
    }
}

fn gather(root: &Path) -> HashMap<Identity, Vec<PathBuf>> {
    let (mut names, mut folders) = (HashMap::<_, Vec<_>>::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).into_iter().flatten().flatten() {
            let (Ok(found), path) = (entry.metadata(), folder.join(entry.file_name())) else {
                continue;
            };
            if found.is_dir() {
                folders.push(path);
            } else if found.is_file() && found.nlink() > 1 {
                names.entry(identity(&found)).or_default().push(path);
            }
        }
    }
    names
}
