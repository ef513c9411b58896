//! The tools of the worker: the daemon's own tools, offered to the agent as client tools, and run
//! here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::message::text_of;
use quintet_kernel::port::{
    BoxFuture, CancelSignal, Invocation, NobodyToAsk, ToolContext, ToolProgress,
};
use quintet_kernel::tool::{PERMISSIONS_ARGUMENT, ToolKind, ToolSpec};
use quintet_kernel::{CallId, SessionId, TurnId};
use quintet_tools::Toolbox;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The tool for commands in the computer-use protocol. The daemon waits for it as long as the call
/// states, and 120 seconds for every other tool.
const COMMAND: &str = "run_shell_command";
const COMMAND_DESCRIPTION: &str =
    "Run a shell command that takes long: like `shell`, with more time.";
const SHELL: &str = "shell";
/// Maximum time of a `shell` command, in seconds.
const SHELL_SECONDS_LIMIT: f64 = 100.0;
/// Default and maximum time of a command, in seconds.
const COMMAND_SECONDS: f64 = 120.0;
const COMMAND_SECONDS_LIMIT: f64 = 880.0;

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolOutput {
    pub(super) ok: bool,
    pub(super) text: String,
}

impl ToolOutput {
    pub(super) fn failure(why: impl Into<String>) -> Self {
        Self { ok: false, text: why.into() }
    }
}

/// The tools and their folder.
pub(super) struct Toolkit {
    toolbox: Toolbox,
    folder: PathBuf,
}

impl Toolkit {
    pub(super) fn new(toolbox: Toolbox, folder: PathBuf) -> Self {
        Self { toolbox, folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The tool definitions for the agent.
    pub(super) fn manifest(&self) -> Value {
        let specs = self.toolbox.specs();
        let tools = specs.iter().filter(|spec| is_offered(spec.kind)).flat_map(|spec| offers(spec));
        json!({ "version": 1, "tools": tools.collect::<Vec<_>>() })
    }

    /// True if a tool only reads. Unknown tools do nothing.
    pub(super) fn only_reads(&self, name: &str) -> bool {
        self.toolbox.get(own_name(name)).is_none_or(|tool| tool.spec().kind == ToolKind::Read)
    }

    /// Runs a call. Its file changes are not recorded: the worker's machine belongs to the agent.
    pub(super) async fn run(&self, call: ToolCall, cancel: CancellationToken) -> ToolOutput {
        let Some(tool) = self.toolbox.get(own_name(&call.tool)) else {
            return ToolOutput::failure(format!("there is no tool {:?}", call.tool));
        };
        if !is_offered(tool.spec().kind) {
            return ToolOutput::failure(format!("{} is not offered here", call.tool));
        }
        let Some(invocation) = self.invocation(&call) else {
            return ToolOutput::failure("the call has no proper id");
        };
        if call.input.get(PERMISSIONS_ARGUMENT).is_some_and(|permissions| !permissions.is_null()) {
            return ToolOutput::failure(
                "nobody here can agree to `permissions`; what commands may do is set by `sandbox.*` \
                 of the worker's configuration",
            );
        }
        let cancellation = Arc::new(Cancellation(cancel));
        let output = tool
            .run(
                invocation,
                ToolContext {
                    progress: cancellation.clone(),
                    cancel: cancellation,
                    questions: Arc::new(NobodyToAsk),
                },
            )
            .await;
        let text = text_of(&output.outcome.parts);
        match &output.outcome.error {
            None => ToolOutput { ok: true, text },
            Some(error) if text.is_empty() => ToolOutput::failure(error.clone()),
            Some(_) => ToolOutput::failure(text),
        }
    }

    /// Deletes the records of a turn.
    pub(super) fn over(&self, turn: &str) {
        if let Some(turn) = TurnId::parse(turn) {
            self.toolbox.workspaces().turn_ended(&turn);
        }
    }

    fn invocation(&self, call: &ToolCall) -> Option<Invocation> {
        Some(Invocation {
            session: SessionId::parse(&call.turn)?,
            call: CallId::parse(&call.id)?,
            turn: TurnId::parse(&call.turn)?,
            workspace: self.folder.clone(),
            input: own_input(&call.tool, &call.input),
            pictures: Vec::new(),
        })
    }
}

/// A call of the agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) turn: String,
    pub(super) tool: String,
    pub(super) input: Value,
}

fn is_offered(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Read | ToolKind::Write | ToolKind::Exec | ToolKind::Network => true,
        ToolKind::Memory | ToolKind::Delegate => false,
    }
}

fn own_name(name: &str) -> &str {
    if name == COMMAND { SHELL } else { name }
}

fn offers(spec: &ToolSpec) -> Vec<Value> {
    let mut schema = spec.schema.clone();
    if spec.name != SHELL {
        return vec![offer(&spec.name, &spec.description, &schema)];
    }
    schema["properties"]["timeout_seconds"] = json!({
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": SHELL_SECONDS_LIMIT,
        "description": format!("When to give up; default {SHELL_SECONDS_LIMIT} seconds"),
    });
    let short = offer(SHELL, &spec.description, &schema);
    vec![short, offer(COMMAND, COMMAND_DESCRIPTION, &command_schema())]
}

fn offer(name: &str, description: &str, schema: &Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "execution_target": "local_runtime",
        "argument_resolution": "passthrough",
        "schema": schema,
    })
}

fn command_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "The command line, for bash" },
            "terminate_after_seconds": {
                "type": "number",
                "minimum": 1,
                "maximum": COMMAND_SECONDS_LIMIT,
                "description": format!("When to give up; default {COMMAND_SECONDS} seconds"),
            },
        },
        "required": ["command"],
    })
}

/// Converts the arguments to those of the tool itself.
fn own_input(tool: &str, input: &Value) -> Value {
    let given = |name: &str, default: f64, limit: f64| {
        let seconds = input[name].as_f64().filter(|seconds| *seconds > 0.0).unwrap_or(default);
        seconds.min(limit)
    };
    let seconds = match tool {
        COMMAND => given("terminate_after_seconds", COMMAND_SECONDS, COMMAND_SECONDS_LIMIT),
        SHELL => given("timeout_seconds", SHELL_SECONDS_LIMIT, SHELL_SECONDS_LIMIT),
        _ => return input.clone(),
    };
    json!({ "command": input["command"], "timeout_seconds": seconds })
}

/// Progress of a worker's tool is not shown; the tool is cancelled when its run stops.
struct Cancellation(CancellationToken);

impl ToolProgress for Cancellation {
    fn report(&self, _: &str) {}
}

impl CancelSignal for Cancellation {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_time_that_it_states() {
        let input = |given: Value| own_input(COMMAND, &given)["timeout_seconds"].clone();
        assert_eq!(input(json!({ "command": "x" })), json!(120.0));
        assert_eq!(input(json!({ "command": "x", "terminate_after_seconds": 5 })), json!(5.0));
        assert_eq!(input(json!({ "command": "x", "terminate_after_seconds": 1e9 })), json!(880.0));
        let short = |given: Value| own_input(SHELL, &given)["timeout_seconds"].clone();
        assert_eq!(short(json!({ "command": "x" })), json!(100.0));
        assert_eq!(short(json!({ "command": "x", "timeout_seconds": 7200 })), json!(100.0));
        let same = json!({ "path": "a" });
        assert_eq!(own_input("read_file", &same), same);
    }
}
