//! `git_status`: what changed since the last commit.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::output_of;
use crate::run::{End, Finished, Runner};
use crate::{git, input};

/// The tool.
pub(crate) struct GitStatus {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
}

#[derive(Debug, Deserialize)]
struct Input {}

impl GitStatus {
    pub(crate) fn new(runner: Arc<Runner>) -> Self {
        let description = "Show which files of the workspace changed since the last commit, as \
                           `git status --short` does."
            .to_owned();
        let spec = super::spec(ToolKind::Read, "git_status", description, json!({}), &[]);
        Self { spec, runner }
    }

    async fn look(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        let Input {} = input::parse(&call.input)?;
        let finished = git::status(&self.runner, &call.workspace, context).await;
        report(&finished.map_err(|error| error.to_string())?)
    }
}

fn report(finished: &Finished) -> Result<ToolOutput, String> {
    let (text, complaint) = (finished.stdout.text(), finished.stderr.text());
    match finished.end {
        End::Exited(0) if text.is_empty() => Ok(Outcome::success("nothing changed").into()),
        End::Exited(0) => Ok(ToolOutput::with_files(Outcome::success(text), finished.files())),
        End::Exited(127) => Err("git is not installed".to_owned()),
        End::Exited(_) if complaint.contains("not a git repository") => {
            Err("the workspace is not a git repository".to_owned())
        }
        End::Exited(code) => Err(format!("git status: exit code {code}: {}", complaint.trim())),
        End::TimedOut(after) => Err(format!("git status: timed out after {}s", after.as_secs())),
        End::Cancelled(_) => Ok(Outcome::ended(Ending::Cancelled, "cancelled").into()),
    }
}

impl Tool for GitStatus {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = input::parse::<Input>(&call.input);
        let preview = preview.map(|_| ("git status --short .".to_owned(), None));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { output_of(self.look(&call, &context).await) })
    }
}
