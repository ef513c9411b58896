//! Workspaces as they are on this machine.

use std::path::Path;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Workspaces};
use tokio::task::spawn_blocking;

use crate::blocking;
use crate::survey::Survey;

mod diff;
mod put_back;

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders {
    survey: Survey,
}

impl Folders {
    pub(crate) fn new(survey: Survey) -> Self {
        Self { survey }
    }
}

impl Workspaces for Folders {
    fn survey<'a>(&'a self, workspace: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Box::pin(self.survey.gather(workspace, tokens))
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
