//! What has to be known of all changes to judge one of them.

use std::collections::HashSet;
use std::path::Path;

use quintet_kernel::change::Shape;
use quintet_kernel::port::Changed;

use super::has;
use crate::folders::now::now;
use crate::repository::Repositories;

/// A workspace, and what changes made in it.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) root: &'a Path,
    pub(super) git: Repositories<'a>,
    /// Paths that became links.
    links: HashSet<&'a Path>,
    /// Folders that were not there before.
    made: HashSet<&'a Path>,
}

impl<'a> Around<'a> {
    pub(super) fn new(root: &'a Path, changes: &[(&'a Path, &Changed)]) -> Self {
        let became = |shape: Shape| {
            changes.iter().filter(move |(_, changed)| has(changed.after.as_ref(), shape))
        };
        let is_new = |changed: &Changed| !has(changed.before.as_ref(), Shape::Folder);
        let new = became(Shape::Folder).filter(|(_, changed)| is_new(changed));
        let made: HashSet<&Path> = new.map(|(path, _)| *path).collect();
        let heads = became(Shape::File).filter(|(path, _)| path.ends_with("HEAD"));
        // What came with these goes with them, also if a crash left only a part of it.
        let whole = heads.filter_map(|(head, _)| head.parent()).filter(|folder| {
            ["objects", "refs"].iter().all(|name| made.contains(&*folder.join(name)))
        });
        let repositories = whole.filter(|folder| made.contains(folder)).collect();
        let marks = changes.iter().filter(|(path, _)| path.ends_with(".git"));
        let trees = marks.filter_map(|(mark, _)| mark.parent()).collect();
        Self {
            root,
            git: Repositories::remembering(root, &repositories, trees),
            links: became(Shape::Link).map(|(path, _)| *path).collect(),
            made,
        }
    }

    /// Whether a link is in the place of a folder around a path, which goes with the rest.
    pub(super) fn is_behind_a_link(&self, path: &Path) -> bool {
        let mut folders = path.ancestors().skip(1);
        folders.any(|folder| {
            let leads_on = || now(self.root, folder).is_ok_and(|now| now.is(Shape::Link));
            self.links.contains(folder) && leads_on()
        })
    }

    /// Whether a path is in a repository that was not there before.
    pub(super) fn is_in_a_new_repository(&self, path: &Path) -> bool {
        self.git.around(path).is_some_and(|folder| self.made.contains(folder))
    }
}
