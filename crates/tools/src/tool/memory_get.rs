//! `memory_get`: lines of a file of memory.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::memory::{LineRange, Passage};
use quintet_kernel::port::{BoxFuture, Invocation, Memory, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::subject::{self, FileAccess};
use crate::{input, show};

/// The tool.
pub(crate) struct MemoryGet {
    spec: Arc<ToolSpec>,
    memory: Arc<dyn Memory>,
}

#[derive(Debug, Deserialize)]
struct Input {
    path: String,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

impl MemoryGet {
    pub(crate) fn new(memory: Arc<dyn Memory>) -> Self {
        let description = "Read lines of a memory file, as `memory_search` names them: \
                           `memory/MEMORY.md`, or `memory/YYYY-MM-DD.md` for a day."
            .to_owned();
        let properties = json!({
            "path": { "type": "string", "description": "The file, relative to the workspace" },
            "start_line": {
                "type": "integer", "minimum": 1, "description": "The first line; default 1",
            },
            "end_line": {
                "type": "integer", "minimum": 1, "description": "The last line; default the end",
            },
        });
        let spec = super::spec(ToolKind::Read, "memory_get", description, properties, &["path"]);
        Self { spec, memory }
    }
}

impl Tool for MemoryGet {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let path = PathBuf::from(&input.path);
            Assessment {
                risk: Risk::Low,
                reasons: vec!["only reads the agent's notes".to_owned()],
                reversible: true,
                preview: format!("read {}", show::path(&path)),
                subject: subject::looked_up(&call.workspace, FileAccess::Reads, vec![path]).await,
                settled: None,
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return Outcome::failure(why).into(),
            };
            let lines = LineRange { first: input.start_line.unwrap_or(1), last: input.end_line };
            tokio::select! {
                read = self.memory.get(&call.workspace, &input.path, lines) => match read {
                    Ok(passage) => show::output(&report(&passage), "memory.txt"),
                    Err(error) => Outcome::failure(error.to_string()).into(),
                },
                () = context.cancel.cancelled() => {
                    Outcome::ended(Ending::Cancelled, "cancelled").into()
                }
            }
        })
    }
}

fn report(passage: &Passage) -> String {
    let Passage { path, text, line_start, line_end, lines } = passage;
    if line_end < line_start {
        return format!("{path} has {}", show::count(usize::try_from(*lines).unwrap_or(0), "line"));
    }
    if (*line_start, *line_end) == (1, *lines) {
        format!("{text}\n")
    } else {
        format!("{text}\n[lines {line_start}-{line_end} of {lines}]\n")
    }
}
