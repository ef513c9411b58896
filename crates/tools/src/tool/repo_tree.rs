//! `repo_tree`: the files of the workspace.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::{self, CancelFlag};
use crate::walk::{Next, Walk};
use crate::{input, show};

const DEFAULT_LIMIT: usize = 500;
const ENTRIES_LIMIT: usize = 5000;
const DEPTH_LIMIT: usize = 30;
/// Directories of things that were fetched or made.
const SKIPPED: [&str; 6] = ["node_modules", "vendor", "dist", "build", "bin", "target"];

/// The tool.
pub(crate) struct RepoTree {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct Input {
    max_files: Option<usize>,
}

impl RepoTree {
    pub(crate) fn new() -> Self {
        let description = format!(
            "List the files of the workspace, one path a line, sorted; without what .gitignore \
             leaves out and without {}.",
            SKIPPED.join(", ")
        );
        let properties = json!({
            "max_files": {
                "type": "integer",
                "minimum": 1,
                "maximum": ENTRIES_LIMIT,
                "description": format!("At most this many files; default {DEFAULT_LIMIT}"),
            },
        });
        Self { spec: super::spec(ToolKind::Read, "repo_tree", description, properties, &[]) }
    }
}

impl Tool for RepoTree {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = input::parse::<Input>(&call.input);
        Box::pin(super::only_looks(call, preview.map(|_| ("list all files".to_owned(), None))))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match input::parse::<Input>(&call.input) {
                Ok(input) => {
                    let most = input.max_files.unwrap_or(DEFAULT_LIMIT);
                    let list = move |flag: &CancelFlag| list(&call.workspace, most, flag);
                    blocking::run_cancellable(&context, list).await
                }
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}

fn list(workspace: &Path, most: usize, flag: &CancelFlag) -> Result<ToolOutput, String> {
    let (files, more) = files(workspace, most, flag)?;
    if files.is_empty() {
        return Ok(Outcome::success("workspace contains no files").into());
    }
    let mut text = files.join("\n") + "\n";
    if more {
        text += &format!("[only the first {most} files; max_files may be up to {ENTRIES_LIMIT}]\n");
    }
    Ok(show::output(&text, "files.txt"))
}

/// The first files of a workspace, and whether there are more.
pub(crate) fn files(
    workspace: &Path,
    most: usize,
    flag: &CancelFlag,
) -> Result<(Vec<String>, bool), String> {
    let walk = Walk { workspace, within: None, skipped: &SKIPPED, depth: Some(DEPTH_LIMIT) };
    let (mut files, mut more) = (Vec::new(), false);
    walk.each(flag, |file| {
        more = files.len() == most;
        if more {
            return Ok(Next::Stop);
        }
        files.push(show::path(&file.path));
        Ok(Next::Continue)
    })?;
    Ok((files, more))
}
