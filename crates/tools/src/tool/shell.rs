//! `shell`: a command in the workspace.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Kind, Outcome, Placement, Spec};
use serde::Deserialize;
use serde_json::json;

use crate::run::{Job, Runner, TIMEOUT, output};
use crate::{input, risk};

/// The longest time a call may ask for.
const LONGEST: Duration = Duration::from_secs(4 * 60 * 60);

/// The tool.
pub(crate) struct Shell {
    spec: Arc<Spec>,
    runner: Arc<Runner>,
}

#[derive(Debug, Deserialize)]
struct Input {
    command: String,
    timeout_seconds: Option<f64>,
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
        asked.map_or(TIMEOUT, |seconds| Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
    }
}

impl Shell {
    pub(crate) fn new(runner: Arc<Runner>) -> Self {
        Self { spec: Arc::new(spec()), runner }
    }

    async fn start(&self, call: &Invocation, desk: &Desk) -> Result<Output, String> {
        let input = Input::of(call)?;
        let (workspace, timeout) = (&*call.workspace, input.timeout());
        let job = Job { command: &input.command, workspace, timeout };
        let finished = self.runner.run(job, desk).await.map_err(|error| error.to_string())?;
        let (report, error) = (finished.report(), finished.error());
        Ok(output(finished.ending(), &report, error, finished.files()))
    }
}

fn spec() -> Spec {
    Spec {
        name: "shell".to_owned(),
        description: "Run a shell command in the workspace and wait for it. It has no input, and \
                      nothing it starts outlives it. It may be confined: then it can write only to the \
                      workspace and $TMPDIR, and has no network but localhost. Long output is cut in the middle."
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
                    "maximum": LONGEST.as_secs(),
                    "description": format!(
                        "When to give up; default {} seconds", TIMEOUT.as_secs()
                    ),
                },
            },
            "required": ["command"],
        }),
        kind: Kind::Exec,
        placement: Placement::Daemon,
    }
}

impl Tool for Shell {
    fn spec(&self) -> Arc<Spec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let assessment = match Input::of(call) {
            Ok(input) => risk::assess(&call.workspace, &[input.command]),
            Err(why) => super::nothing_will_run(why),
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        Box::pin(async move {
            let done = self.start(&call, &desk).await;
            done.unwrap_or_else(|error| Outcome::failure(error).into())
        })
    }
}
