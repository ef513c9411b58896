//! `write_file`: a whole file of the workspace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Kind, Outcome, Spec};
use serde::Deserialize;
use serde_json::json;

use crate::beneath::{self, Content};
use crate::change::{self, Change, Note, Notes};
use crate::run::Runner;
use crate::{blocking, input, show};

/// The tool.
pub(crate) struct WriteFile {
    spec: Arc<Spec>,
    runner: Arc<Runner>,
    notes: Arc<Notes>,
}

#[derive(Clone, Debug, Deserialize)]
struct Input {
    path: PathBuf,
    content: String,
}

impl WriteFile {
    pub(crate) fn new(runner: Arc<Runner>, notes: Arc<Notes>) -> Self {
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
        let spec = super::spec(Kind::Write, "write_file", description, properties, &required);
        Self { spec, runner, notes }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> Arc<Spec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let (root, path) = (call.workspace.clone(), input.path.clone());
            match blocking::change(move || plan(&root, input)).await {
                Ok(change) => change::assess(&self.runner, &call.workspace, vec![change]).await,
                Err(why) => change::inapplicable(&call.workspace, vec![path], &why).await,
            }
        })
    }

    fn run(&self, call: Invocation, _: Desk) -> BoxFuture<'_, Output> {
        Box::pin(async move {
            let note = self.notes.of(&call);
            let done = match input::parse(&call.input) {
                Ok(input) => blocking::change(move || write(&call.workspace, input, &note)).await,
                Err(why) => Err(why),
            };
            blocking::settle(done)
        })
    }
}

fn plan(root: &Path, input: Input) -> Result<Change, String> {
    let before = beneath::read(root, &input.path).map_err(|error| error.to_string())?;
    let mode = before.as_ref().and_then(|before| before.mode);
    let after = Content::file(input.content.into_bytes(), mode);
    Ok(Change { blind: true, ..Change::of(input.path, before, Some(after)) })
}

fn write(root: &Path, input: Input, note: &Note) -> Result<Output, String> {
    let size = input.content.len();
    let change = plan(root, input)?;
    let path = show::path(&change.path);
    if change.before == change.after {
        return Ok(Outcome::success(format!("{path} has this content already")).into());
    }
    let verb = if change.before.is_some() { "overwrote" } else { "created" };
    let done = Outcome::success(format!("{verb} {path} ({})", show::count(size, "byte")));
    Ok(change::carry_out(note, &[change], done.into()))
}
