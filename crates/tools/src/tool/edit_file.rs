//! `edit_file`: replaces a text in a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;
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

/// How many places are named where a text is not unique.
const NAMED_LIMIT: usize = 20;

/// The tool.
pub(crate) struct EditFile {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
    log: Arc<UndoLog>,
    buffers: Buffers,
}

#[derive(Clone, Debug, Deserialize)]
struct Input {
    path: PathBuf,
    old: String,
    new: String,
    replace_all: Option<bool>,
}

impl Input {
    fn of(call: &Invocation) -> Result<Self, String> {
        let input: Self = input::parse(&call.input)?;
        if input.old.is_empty() {
            return Err("invalid input: `old` is empty".to_owned());
        }
        if input.old == input.new {
            return Err("invalid input: `new` is the same as `old`".to_owned());
        }
        Ok(input)
    }
}

impl EditFile {
    pub(crate) fn new(runner: Arc<Runner>, log: Arc<UndoLog>, buffers: Buffers) -> Self {
        let description = "Replace a text in a file of the workspace. The text must be there \
                           exactly as given, white space included, and only once unless all \
                           places are to be replaced."
            .to_owned();
        let properties = json!({
            "path": {
                "type": "string",
                "description": "Path of the file, relative to the workspace",
            },
            "old": { "type": "string", "description": "The text to replace" },
            "new": { "type": "string", "description": "What to put in its place" },
            "replace_all": {
                "type": "boolean",
                "description": "Whether to replace it wherever it occurs; default false",
            },
        });
        let required = ["path", "old", "new"];
        let spec = super::spec(ToolKind::Write, "edit_file", description, properties, &required);
        Self { spec, runner, log, buffers }
    }
}

impl Tool for EditFile {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input = match Input::of(call) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let (root, path) = (call.workspace.clone(), input.path.clone());
            let unsaved = self.buffers.fetch(call, vec![path.clone()]).await;
            match blocking::run_to_end(move || plan(&root, &input, &unsaved)).await {
                Ok((change, _)) => {
                    change::assess(&self.runner, &call.workspace, vec![change]).await
                }
                Err(why) => change::inapplicable(&call.workspace, vec![path], &why).await,
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let entry = self.log.entry(&call);
            let done = match Input::of(&call) {
                Ok(input) => {
                    let paths = vec![input.path.clone()];
                    let unsaved = self.buffers.fetch_or_cancel(&call, &context, paths).await;
                    let root = call.workspace.clone();
                    blocking::run_to_end(move || edit(&root, &input, &unsaved, &entry)).await
                }
                Err(why) => Err(why),
            };
            let output = blocking::output_of(done);
            self.buffers.pass_on(&call, &context, &output.changes).await;
            output
        })
    }
}

fn edit(
    root: &Path,
    input: &Input,
    unsaved: &Unsaved,
    entry: &LogEntry,
) -> Result<ToolOutput, String> {
    let (change, lines) = plan(root, input, unsaved)?;
    let path = show::path(&change.path);
    let places = show::count(lines.len(), "place");
    let done = Outcome::success(format!("changed {path} in {places}, {}", at(&lines)));
    Ok(entry.carry_out(&[change], done.into()))
}

/// The change, and the lines where it is.
fn plan(root: &Path, input: &Input, unsaved: &Unsaved) -> Result<(Change, Vec<usize>), String> {
    let path = show::path(&input.path);
    let before = unsaved.read(root, &input.path).map_err(|error| error.to_string())?;
    let before = before.ok_or_else(|| format!("no such file: {path}"))?;
    if before.bytes.contains(&0) {
        return Err(format!("binary file: only text can be edited: {path}"));
    }
    let old = input.old.as_bytes();
    let found: Vec<_> = memmem::find_iter(&before.bytes, old).collect();
    let lines = lines_of(&before.bytes, &found);
    match (found.len(), input.replace_all.unwrap_or(false)) {
        (0, _) => {
            return Err(format!("`old` does not occur in {path}{}", hint(&before.bytes, old)));
        }
        (1, _) | (_, true) => (),
        (times, false) => {
            return Err(format!(
                "`old` occurs {times} times in {path}, {}; give more of the text around it, or \
                 set `replace_all`",
                at(&lines)
            ));
        }
    }
    let bytes = replaced(&before.bytes, &found, old.len(), input.new.as_bytes());
    let after = FileData::file(bytes, before.mode);
    Ok((Change::of(input.path.clone(), Some(before), Some(after)), lines))
}

fn replaced(text: &[u8], found: &[usize], length: usize, new: &[u8]) -> Vec<u8> {
    let (mut result, mut done) = (Vec::with_capacity(text.len()), 0);
    for at in found {
        result.extend_from_slice(&text[done..*at]);
        result.extend_from_slice(new);
        done = at + length;
    }
    result.extend_from_slice(&text[done..]);
    result
}

/// The lines in which these places are, counted from 1.
fn lines_of(text: &[u8], found: &[usize]) -> Vec<usize> {
    let (mut line, mut done) = (1, 0);
    let count = |at: &usize| {
        line += memchr::memchr_iter(b'\n', &text[done..*at]).count();
        done = *at;
        line
    };
    found.iter().map(count).collect()
}

fn at(lines: &[usize]) -> String {
    let named: Vec<_> = lines.iter().take(NAMED_LIMIT).map(ToString::to_string).collect();
    let plural = if lines.len() == 1 { "" } else { "s" };
    let rest = if lines.len() > NAMED_LIMIT { " and further" } else { "" };
    format!("at line{plural} {}{rest}", named.join(", "))
}

/// Why a text that seems to be there is not found.
fn hint(text: &[u8], old: &[u8]) -> &'static str {
    let folded = |bytes: &[u8]| -> Vec<u8> {
        bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
    };
    let old = folded(old);
    if !old.is_empty() && memmem::find(&folded(text), &old).is_some() {
        "; it does with other white space or line ends"
    } else {
        ""
    }
}
