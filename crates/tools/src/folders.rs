//! Workspaces as they are on this machine.

use std::path::Path;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Workspaces};

use crate::survey::Survey;

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

    fn diff(&self, _changes: Vec<Changed>) -> BoxFuture<'_, String> {
        Box::pin(async { String::new() })
    }

    fn put_back<'a>(
        &'a self,
        _workspace: &'a Path,
        _changes: Vec<Changed>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}
