//! The files of a folder, for front ends that show them: what `repo_tree` shows to models.

use std::path::Path;

use quintet_kernel::port::{BoxFuture, Outlines};
use tokio::task::spawn_blocking;

use crate::blocking::Flag;
use crate::tool::repo_tree;

/// Looks into folders.
#[derive(Debug)]
pub(crate) struct Outline;

impl Outlines for Outline {
    fn files<'a>(
        &'a self,
        folder: &'a Path,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<String>, String>> {
        let folder = folder.to_owned();
        Box::pin(async move {
            let looking = spawn_blocking(move || repo_tree::files(&folder, most, &Flag::default()));
            let (files, _) = looking.await.map_err(|error| error.to_string())??;
            Ok(files)
        })
    }
}
