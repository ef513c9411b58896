//! `write_file`: a whole file of the workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::buffers::{Buffers, Unsaved};
use crate::change::{self, Change};
use crate::confined_fs::FileData;
use crate::run::Runner;
use crate::undo::{LogEntry, UndoLog};
use crate::{blocking, input, show};

/// The tool.
pub(crate) struct WriteFile {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
    log: Arc<UndoLog>,
    buffers: Buffers,
}

#[derive(Clone, Debug, Deserialize)]
struct Input {
    path: PathBuf,
    content: String,
}

impl WriteFile {
    pub(crate) fn new(runner: Arc<Runner>, log: Arc<UndoLog>, buffers: Buffers) -> Self {
        let description = "Write a whole file of the workspace: create it, with the folders it \
                           needs, or overwrite what is there."
            .to_owned();
        let properties = json!({
            "path": {
                "type": "string",
                "description": "Path of the file, relative to the workspace",
            },
            "content": { "type": "string", "description": "All of its content" },
        });
        let required = ["path", "content"];
        let spec = super::spec(ToolKind::Write, "write_file", description, properties, &required);
        Self { spec, runner, log, buffers }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let (root, path) = (call.workspace.clone(), input.path.clone());
            let unsaved = self.buffers.fetch(call, vec![path.clone()]).await;
            match blocking::run_to_end(move || plan(&root, input, &unsaved)).await {
                Ok(change) => change::assess(&self.runner, &call.workspace, vec![change]).await,
                Err(why) => change::inapplicable(&call.workspace, vec![path], &why).await,
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let entry = self.log.entry(&call);
            let done = match input::parse::<Input>(&call.input) {
                Ok(input) => {
                    let paths = vec![input.path.clone()];
                    let unsaved = self.buffers.fetch_or_cancel(&call, &context, paths).await;
                    let root = call.workspace.clone();
                    blocking::run_to_end(move || write(&root, input, &unsaved, &entry)).await
                }
                Err(why) => Err(why),
            };
            let output = blocking::output_of(done);
            self.buffers.pass_on(&call, &context, &output.changes).await;
            output
        })
    }
}

fn plan(root: &Path, input: Input, unsaved: &Unsaved) -> Result<Change, String> {
    let before = unsaved.read(root, &input.path).map_err(|error| error.to_string())?;
    let mode = before.as_ref().and_then(|before| before.mode);
    let after = FileData::file(input.content.into_bytes(), mode);
    Ok(Change { blind: true, ..Change::of(input.path, before, Some(after)) })
}

fn write(
    root: &Path,
    input: Input,
    unsaved: &Unsaved,
    entry: &LogEntry,
) -> Result<ToolOutput, String> {
    let (size, in_editor) = (input.content.len(), unsaved.text(&input.path).is_some());
    let change = plan(root, input, unsaved)?;
    let path = show::path(&change.path);
    // What the editor has may not be saved yet.
    if change.before == change.after && !in_editor {
        return Ok(Outcome::success(format!("{path} has this content already")).into());
    }
    let verb = if change.before.is_some() { "overwrote" } else { "created" };
    let done = Outcome::success(format!("{verb} {path} ({})", show::count(size, "byte")));
    Ok(entry.carry_out(&[change], done.into()))
}
