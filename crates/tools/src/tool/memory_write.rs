//! `memory_write`: adds to what is remembered beyond the session.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::memory::{MemoryEntry, MemoryFile, SavedEntry};
use quintet_kernel::port::{BoxFuture, Invocation, Memory, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Outcome, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{input, show, subject};

/// The tool.
pub(crate) struct MemoryWrite {
    spec: Arc<ToolSpec>,
    memory: Arc<dyn Memory>,
}

#[derive(Debug, Deserialize)]
struct Input {
    content: String,
    target: Option<String>,
}

impl Input {
    fn target(&self) -> MemoryFile {
        self.target.as_deref().and_then(MemoryFile::named).unwrap_or(MemoryFile::Daily)
    }

    /// The file, with no date where that is not known before it is written.
    fn path(&self) -> &'static str {
        match self.target() {
            MemoryFile::LongTerm => "memory/MEMORY.md",
            MemoryFile::Daily => "memory/YYYY-MM-DD.md",
        }
    }
}

impl MemoryWrite {
    pub(crate) fn new(memory: Arc<dyn Memory>) -> Self {
        let description =
            "Remember something beyond this conversation, as a short entry in Markdown. \
                           `long_term` is for what stays true: preferences, decisions, facts about \
                           people and the project; `daily` is for what happened today. Entries are \
                           only added; never write secrets."
                .to_owned();
        let properties = json!({
            "content": {
                "type": "string",
                "minLength": 1,
                "description": "The entry, understandable without this conversation",
            },
            "target": {
                "type": "string",
                "enum": ["long_term", "daily"],
                "description": "Where it belongs; default daily",
            },
        });
        let spec =
            super::spec(ToolKind::Memory, "memory_write", description, properties, &["content"]);
        Self { spec, memory }
    }
}

impl Tool for MemoryWrite {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return super::nothing_will_run(why),
            };
            let paths = vec![PathBuf::from(input.path())];
            let deed = subject::FileAccess::Changes;
            let about = subject::looked_up(&call.workspace, deed, paths).await;
            let added: String = input.content.lines().map(|line| format!("+{line}\n")).collect();
            Assessment {
                risk: Risk::Low,
                reasons: vec!["adds to the agent's notes and changes nothing else".to_owned()],
                reversible: true,
                preview: show::preview(&format!("{}\n{added}", input.path())),
                subject: CallSubject { similar: Some("adds to memory".to_owned()), ..about },
                settled: None,
            }
        })
    }

    fn run(&self, call: Invocation, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let input: Input = match input::parse(&call.input) {
                Ok(input) => input,
                Err(why) => return Outcome::failure(why).into(),
            };
            let entry = MemoryEntry::new(input.target(), input.content);
            match self.memory.write(&call.workspace, entry).await {
                Ok(written) => Outcome::success(report(&written)).into(),
                Err(error) => Outcome::failure(error.to_string()).into(),
            }
        })
    }
}

fn report(SavedEntry { path, line_start, line_end, warning }: &SavedEntry) -> String {
    let warning = warning.as_ref().map(|warning| format!("\nwarning: {warning}"));
    format!("added to {path}, lines {line_start}-{line_end}{}", warning.unwrap_or_default())
}
