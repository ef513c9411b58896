//! Workspaces as they are on this machine.

use std::path::Path;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Workspaces};

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders;

impl Workspaces for Folders {
    fn survey<'a>(&'a self, _workspace: &'a Path, _tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        Box::pin(async { Vec::new() })
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
