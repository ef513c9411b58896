//! The files of a folder, for front ends that show them: what `repo_tree` shows to models.

use std::path::Path;

use quintet_kernel::port::{BoxFuture, DirectoryListing};

use crate::blocking::run_while_awaited;
use crate::tool::repo_tree;

/// Looks into folders.
#[derive(Debug)]
pub(crate) struct LocalDirectories;

impl DirectoryListing for LocalDirectories {
    fn files<'a>(
        &'a self,
        folder: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, String>> {
        let folder = folder.to_owned();
        Box::pin(async move {
            let looking = run_while_awaited(move |flag| repo_tree::files(&folder, most, flag));
            let (files, _) = looking.await.ok_or("the look broke off")??;
            Ok(files)
        })
    }
}
