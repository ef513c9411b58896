//! `read_file`: some lines of a text file in the workspace.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Placement, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::buffers::{Buffers, Unsaved};
use crate::lines::{self, LINES_LIMIT, Range};
use crate::subject::{self, FileAccess};
use crate::{confined_fs, input};

const BUFFER: usize = 64 * 1024;

/// The tool.
pub(crate) struct ReadFile {
    spec: Arc<ToolSpec>,
    buffers: Buffers,
}

#[derive(Debug, Deserialize)]
struct Input {
    path: PathBuf,
    start_line: Option<u64>,
    end_line: Option<u64>,
}

impl ReadFile {
    pub(crate) fn new(buffers: Buffers) -> Self {
        Self { spec: Arc::new(spec()), buffers }
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "read_file".to_owned(),
        description: format!(
            "Read a text file of the workspace, at most {LINES_LIMIT} lines at once. If there is \
             more, the last line says where to go on."
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "Path of the file, relative to the workspace",
                },
                "start_line": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line to read, counted from 1; default 1",
                },
                "end_line": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Last line to read, itself included",
                },
            },
            "required": ["path"],
        }),
        kind: ToolKind::Read,
        placement: Placement::Daemon,
        strict: false,
    }
}

impl Tool for ReadFile {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            match input::parse::<Input>(&call.input) {
                Ok(input) => Assessment {
                    risk: Risk::Low,
                    reasons: vec!["reads a file of the workspace".to_owned()],
                    reversible: true,
                    preview: format!("read {}", input.path.display()),
                    subject: subject::looked_up(
                        &call.workspace,
                        FileAccess::Reads,
                        vec![input.path],
                    )
                    .await,
                    settled: None,
                },
                Err(why) => super::nothing_will_run(why),
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match input::parse(&call.input) {
                Ok(input) => self.read(call, input, context).await.into(),
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}

impl ReadFile {
    async fn read(&self, call: Invocation, input: Input, context: ToolContext) -> Outcome {
        let paths = vec![input.path.clone()];
        let unsaved = self.buffers.fetch_or_cancel(&call, &context, paths).await;
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = cancelled.clone();
        let go_on = move || !flag.load(Ordering::Relaxed);
        let read = move || read_now(&call.workspace, &input, &unsaved, go_on);
        let mut reading = tokio::task::spawn_blocking(read);
        let read = tokio::select! {
            read = &mut reading => read,
            () = context.cancel.cancelled() => {
                cancelled.store(true, Ordering::Relaxed);
                reading.await
            }
        };
        match read {
            Ok(Ok(text)) => Outcome::success(text),
            Ok(Err(lines::LinesError::Cancelled)) => Outcome::ended(Ending::Cancelled, "cancelled"),
            Ok(Err(error)) => Outcome::failure(error.to_string()),
            Err(error) => Outcome::failure(format!("the read broke off: {error}")),
        }
    }
}

fn read_now(
    workspace: &Path,
    input: &Input,
    unsaved: &Unsaved,
    go_on: impl Fn() -> bool,
) -> Result<String, lines::LinesError> {
    let file = confined_fs::open(workspace, &input.path).map_err(std::io::Error::other)?;
    let range = Range { first: input.start_line.unwrap_or(1), last: input.end_line };
    if let Some(text) = unsaved.text(&input.path) {
        return lines::read(text, text.len() as u64, range, go_on);
    }
    let size = file.metadata()?.len();
    lines::read(BufReader::with_capacity(BUFFER, file), size, range, go_on)
}
