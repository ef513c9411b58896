//! `find_files`: the files whose names fit a pattern.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::{self, CancelFlag};
use crate::glob::Glob;
use crate::walk::{Next, Walk};
use crate::{input, show};

const DEFAULT_LIMIT: usize = 200;
const FILES_LIMIT: usize = 5000;

/// The tool.
pub(crate) struct FindFiles {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct Input {
    pattern: String,
    path: Option<PathBuf>,
    max_results: Option<usize>,
}

impl Input {
    fn of(call: &Invocation) -> Result<(Self, Glob), String> {
        let input: Self = input::parse(&call.input)?;
        let glob = Glob::parse("pattern", &input.pattern)?;
        Ok((input, glob))
    }
}

impl FindFiles {
    pub(crate) fn new() -> Self {
        let description = "Find files of the workspace by a glob pattern, without what .gitignore \
                           leaves out. A pattern without a slash is for the name, one with a \
                           slash for the whole path from the workspace."
            .to_owned();
        let properties = json!({
            "pattern": {
                "type": "string",
                "description": "Such as `*.rs`, `src/**/*.{ts,tsx}`",
            },
            "path": {
                "type": "string",
                "description": "Where to look, relative to the workspace; default everywhere",
            },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": FILES_LIMIT,
                "description": format!("At most this many files; default {DEFAULT_LIMIT}"),
            },
        });
        Self {
            spec: super::spec(ToolKind::Read, "find_files", description, properties, &["pattern"]),
        }
    }
}

impl Tool for FindFiles {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = Input::of(call);
        let preview = preview.map(|(input, _)| (format!("find {}", input.pattern), input.path));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match Input::of(&call) {
                Ok((input, glob)) => {
                    let find = move |flag: &CancelFlag| find(&call.workspace, &input, &glob, flag);
                    blocking::run_cancellable(&context, find).await
                }
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}

fn find(
    workspace: &Path,
    input: &Input,
    glob: &Glob,
    flag: &CancelFlag,
) -> Result<ToolOutput, String> {
    let most = input.max_results.unwrap_or(DEFAULT_LIMIT);
    let walk = Walk { workspace, within: input.path.as_deref(), skipped: &[], depth: None };
    let (mut found, mut left_out) = (Vec::new(), 0);
    walk.each(flag, |file| {
        if !glob.fits(&file.path) {
            return Ok(Next::Continue);
        }
        if found.len() < most {
            found.push(show::path(&file.path));
        } else {
            left_out += 1;
        }
        Ok(Next::Continue)
    })?;
    if found.is_empty() {
        return Ok(Outcome::success(format!("no file fits {}", input.pattern)).into());
    }
    let mut text = found.join("\n") + "\n";
    if left_out > 0 {
        text += &format!("[{} left out]\n", show::count(left_out, "more file"));
    }
    Ok(show::output(&text, "files.txt"))
}
