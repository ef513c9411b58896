//! `apply_patch`: changes several files, all or none.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::buffers::{Buffers, Unsaved};
use crate::run::Runner;
use crate::undo::{LogEntry, UndoLog};
use crate::{blocking, change, input, patch, show};

/// The tool.
pub(crate) struct ApplyPatch {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
    log: Arc<UndoLog>,
    buffers: Buffers,
}

#[derive(Debug, Deserialize)]
struct Input {
    patch: String,
}

impl Input {
    fn of(call: &Invocation) -> Result<Self, String> {
        let input: Self = input::parse(&call.input)?;
        if input.patch.trim().is_empty() {
            return Err("invalid input: `patch` is empty".to_owned());
        }
        Ok(input)
    }
}

impl ApplyPatch {
    pub(crate) fn new(runner: Arc<Runner>, log: Arc<UndoLog>, buffers: Buffers) -> Self {
        let description = "Change, create, delete and move files of the workspace by a patch: a \
                           unified diff (git style), or `*** Begin Patch` with `*** Update \
                           File:`, `*** Add File:`, `*** Delete File:` and `*** Move to:` up to \
                           `*** End Patch`. Nothing is changed unless all of it applies."
            .to_owned();
        let properties = json!({
            "patch": { "type": "string", "description": "The patch" },
        });
        let spec = super::spec(ToolKind::Write, "apply_patch", description, properties, &["patch"]);
        Self { spec, runner, log, buffers }
    }
}

impl Tool for ApplyPatch {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input = match Input::of(call) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let root = call.workspace.clone();
            let paths = patch::paths(&input.patch);
            let unsaved = self.buffers.fetch(call, paths.clone()).await;
            match blocking::run_to_end(move || patch::plan(&root, &input.patch, &unsaved)).await {
                Ok(plan) if plan.failed == 0 => {
                    change::assess(&self.runner, &call.workspace, plan.changes).await
                }
                Ok(plan) => Assessment {
                    preview: show::preview(&plan.report),
                    ..change::inapplicable(&call.workspace, paths, "the patch does not apply").await
                },
                Err(why) => change::inapplicable(&call.workspace, paths, &why).await,
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let entry = self.log.entry(&call);
            let done = match Input::of(&call) {
                Ok(input) => {
                    let paths = patch::paths(&input.patch);
                    let unsaved = self.buffers.fetch_or_cancel(&call, &context, paths).await;
                    let root = call.workspace.clone();
                    blocking::run_to_end(move || apply(&root, &input.patch, &unsaved, &entry)).await
                }
                Err(why) => Err(why),
            };
            let output = blocking::output_of(done);
            self.buffers.pass_on(&call, &context, &output.changes).await;
            output
        })
    }
}

fn apply(
    root: &Path,
    patch: &str,
    unsaved: &Unsaved,
    entry: &LogEntry,
) -> Result<ToolOutput, String> {
    let plan = patch::plan(root, patch, unsaved)?;
    if plan.failed > 0 {
        let error = format!(
            "the patch does not apply ({} of it); nothing was changed",
            show::count(plan.failed, "part")
        );
        return Ok(show::failure(&format!("{error}\n{}", plan.report), &error, "patch.log"));
    }
    Ok(entry.carry_out(&plan.changes, show::output(&plan.report, "patch.log")))
}
