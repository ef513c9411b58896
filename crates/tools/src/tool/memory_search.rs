//! `memory_search`: finds what is remembered.

use std::fmt::Write;
use std::sync::Arc;

use quintet_kernel::memory::{MemoryFile, MemoryMatch, MemoryQuery, SearchResult};
use quintet_kernel::port::{BoxFuture, Invocation, Memory, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{input, show};

/// The tool.
pub(crate) struct MemorySearch {
    spec: Arc<ToolSpec>,
    memory: Arc<dyn Memory>,
}

#[derive(Debug, Deserialize)]
struct Input {
    query: String,
    kind: Option<String>,
    limit: Option<usize>,
}

impl MemorySearch {
    pub(crate) fn new(memory: Arc<dyn Memory>) -> Self {
        let description =
            "Search what is remembered from earlier conversations and days, by keywords or a \
                           question. \
                           Gives passages with their file, lines and a score up to 1; \
                           `memory_get` reads more around one. Search before you say that you do \
                           not know what a person prefers, decided or did."
                .to_owned();
        let properties = json!({
            "query": { "type": "string", "minLength": 1, "description": "Words to look for" },
            "kind": {
                "type": "string",
                "enum": ["all", "long_term", "daily"],
                "description": "Where to look; default all",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "The most passages; default 8",
            },
        });
        let spec =
            super::spec(ToolKind::Read, "memory_search", description, properties, &["query"]);
        Self { spec, memory }
    }
}

impl Tool for MemorySearch {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = input::parse::<Input>(&call.input)
            .map(|input| (format!("look for {:?} in memory", input.query), Some("memory".into())));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return Outcome::failure(why).into(),
            };
            let kind = input.kind.as_deref().and_then(MemoryFile::named);
            let query = MemoryQuery { text: input.query, kind, limit: input.limit };
            tokio::select! {
                found = self.memory.search(&call.workspace, query) => match found {
                    Ok(found) => show::output(&report(&found), "memory.txt"),
                    Err(error) => Outcome::failure(error.to_string()).into(),
                },
                () = context.cancel.cancelled() => {
                    Outcome::ended(Ending::Cancelled, "cancelled").into()
                }
            }
        })
    }
}

fn report(result: &SearchResult) -> String {
    let mut text = String::new();
    for MemoryMatch { path, excerpt, line_start, line_end, score } in &result.passages {
        let _infallible = writeln!(
            text,
            "{path}, lines {line_start}-{line_end} (score {score:.2}):\n{excerpt}\n"
        );
    }
    if text.is_empty() {
        text = "nothing is remembered about that".to_owned();
    }
    text.truncate(text.trim_end().len());
    if let Some(reason) = result.method.reason() {
        let _infallible = write!(text, "\n\n[search: {}; {reason}]", result.method.name());
    }
    text
}
