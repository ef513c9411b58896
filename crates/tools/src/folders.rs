//! Workspaces as they are on this machine.

use std::path::Path;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Workspaces};
use tokio::task::spawn_blocking;

use crate::blocking;

mod diff;
mod put_back;

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders;

impl Workspaces for Folders {
    fn survey<'a>(&'a self, _workspace: &'a Path, _tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        Box::pin(async { Vec::new() })
    }

    fn diff(&self, changes: Vec<Changed>) -> BoxFuture<'_, String> {
        Box::pin(async {
            let shown = spawn_blocking(move || diff::diff(&changes)).await;
            shown.unwrap_or_else(|error| format!("the changes cannot be shown: {error}\n"))
        })
    }

    fn put_back<'a>(
        &'a self,
        workspace: &'a Path,
        changes: Vec<Changed>,
    ) -> BoxFuture<'a, Result<(), String>> {
        let root = workspace.to_owned();
        Box::pin(blocking::change(move || put_back::put_back(&root, &changes)))
    }
}
