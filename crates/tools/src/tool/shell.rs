//! `shell`: a command in the workspace.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{
    Assessment, Outcome, PERMISSIONS_ARGUMENT, Placement, Risk, ToolKind, ToolSpec,
};
use serde::Deserialize;
use serde_json::json;

use crate::run::{Job, Runner, TIMEOUT, output};
use crate::sandbox::Permissions;
use crate::{input, risk};

/// The longest time a call may ask for.
const TIMEOUT_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);

/// The tool.
pub(crate) struct Shell {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
}

#[derive(Debug, Deserialize)]
struct Input {
    command: String,
    timeout_seconds: Option<f64>,
    permissions: Option<Permissions>,
}

impl Input {
    fn of(call: &Invocation) -> Result<Self, String> {
        let input: Self = input::parse(&call.input)?;
        if input.command.trim().is_empty() {
            return Err("invalid input: `command` is empty".to_owned());
        }
        Ok(input)
    }

    fn timeout(&self) -> Duration {
        let asked = self.timeout_seconds.filter(|seconds| *seconds > 0.0);
        asked.map_or(TIMEOUT, |seconds| {
            Duration::from_secs_f64(seconds.min(TIMEOUT_LIMIT.as_secs_f64()))
        })
    }
}

impl Shell {
    pub(crate) fn new(runner: Arc<Runner>) -> Self {
        Self { spec: Arc::new(spec()), runner }
    }

    /// The permissions of a call beyond what the sandbox allows.
    fn beyond(&self, input: &Input) -> Result<Permissions, String> {
        input
            .permissions
            .as_ref()
            .map_or(Ok(Permissions::default()), |asked| self.runner.beyond(asked))
    }

    fn look(&self, call: &Invocation) -> Result<Assessment, String> {
        let input = Input::of(call)?;
        let permissions = self.beyond(&input)?;
        let mut assessment = risk::assess(&call.workspace, &[input.command]);
        if !permissions.is_empty() {
            widen(&mut assessment, &permissions);
        }
        Ok(assessment)
    }

    async fn start(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        let input = Input::of(call)?;
        let (workspace, timeout) = (&*call.workspace, input.timeout());
        let job = Job { command: &input.command, workspace, timeout };
        let permissions = self.beyond(&input)?;
        let finished = self.runner.run_permitted(job, &permissions, context).await;
        let finished = finished.map_err(|error| error.to_string())?;
        let (report, error) = (finished.report(), finished.error());
        Ok(output(finished.ending(), &report, error, finished.files()))
    }
}

/// Adds the requested permissions to the assessment of a command.
fn widen(assessment: &mut Assessment, permissions: &Permissions) {
    let words = permissions.words();
    let is_wide = permissions.attributes || !permissions.write.is_empty();
    let least = if is_wide { Risk::High } else { Risk::Medium };
    assessment.risk = assessment.risk.max(least);
    assessment.reversible = false;
    let asks = format!("asks to leave the sandbox: {}", words.join(", "));
    assessment.preview.push_str(&format!("\n# {asks}"));
    assessment.reasons.push(asks);
    let similar = assessment.subject.similar.take().filter(|_| assessment.risk < Risk::High);
    assessment.subject.similar =
        similar.map(|common| format!("{common} that {}", words.join(", ")));
    assessment.subject.permissions = words;
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "shell".to_owned(),
        description: "Run a shell command in the workspace and wait for it. It has no input, and \
                      nothing it starts outlives it. It may be confined: then it can write only to the \
                      workspace and $TMPDIR, and has no network but localhost. If the result names \
                      `permissions`, calling again with those runs the command with them, once a \
                      person agrees. Long output is cut in the middle."
            .to_owned(),
        schema: json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "The command line, for bash",
                },
                "timeout_seconds": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": TIMEOUT_LIMIT.as_secs(),
                    "description": format!(
                        "When to give up; default {} seconds", TIMEOUT.as_secs()
                    ),
                },
                PERMISSIONS_ARGUMENT: {
                    "type": "object",
                    "description": "What the command needs beyond the sandbox",
                    "properties": {
                        "network": { "type": "boolean" },
                        "attributes": { "type": "boolean" },
                        "read": { "type": "array", "items": { "type": "string" } },
                        "write": { "type": "array", "items": { "type": "string" } },
                    },
                },
            },
            "required": ["command"],
        }),
        kind: ToolKind::Exec,
        placement: Placement::Daemon, strict: false,
    }
}

impl Tool for Shell {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let assessment = self.look(call).unwrap_or_else(super::nothing_will_run);
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let done = self.start(&call, &context).await;
            done.unwrap_or_else(|error| Outcome::failure(error).into())
        })
    }
}
