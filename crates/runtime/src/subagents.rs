//! Subagents: a tool call starts a session of its own for a task and returns its result.
//!
//! The call only follows the other session, so it can be repeated after a restart: it finds the
//! session that it started before and continues to follow it.

mod run;
mod task;

use std::sync::{Arc, Weak};

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::subagent::SPAWN_TOOL;
use quintet_kernel::tool::{
    Assessment, CallSubject, Ending, Outcome, Placement, Risk, ToolKind, ToolSpec,
};

use crate::deps::RuntimeDeps;
use crate::runtime::{Runtime, Shared};
use run::SubagentRun;
pub(crate) use run::cancel;

/// The name of the tool.
pub const SPAWN_TOOL_NAME: &str = SPAWN_TOOL;

/// The tool as models are offered it.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: SPAWN_TOOL_NAME.into(),
        description: "Have another agent work on a task of its own, in the same workspace, and read \
                      its answer. It knows nothing of this conversation, so say everything it needs. \
                      Several calls at once work side by side."
            .into(),
        schema: task::schema(),
        kind: ToolKind::Delegate,
        placement: Placement::Daemon, strict: false,
    }
}

/// Adds the tool, if the rules offer it.
pub(crate) fn with_spawn_tool(mut deps: RuntimeDeps, shared: &Weak<Shared>) -> RuntimeDeps {
    if deps.rules.tools.iter().any(|tool| tool.name == SPAWN_TOOL_NAME) {
        let tool = SpawnTool { spec: Arc::new(spec()), shared: Weak::clone(shared) };
        deps.tools.insert(SPAWN_TOOL_NAME.into(), Arc::new(tool));
    }
    deps
}

struct SpawnTool {
    spec: Arc<ToolSpec>,
    shared: Weak<Shared>,
}

impl Tool for SpawnTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let task = task::read(&call.input);
        let preview = task.as_ref().map(|task| task.text.clone()).unwrap_or_default();
        let assessment = Assessment {
            // The subagent's own calls are decided one by one.
            risk: Risk::Low,
            reasons: Vec::new(),
            reversible: true,
            preview,
            subject: CallSubject::default(),
            settled: task.err().map(Outcome::failure),
        };
        Box::pin(async move { assessment })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let runtime = self.shared.upgrade().map(Runtime::of);
        Box::pin(async move {
            let Some(runtime) = runtime else { return stopped().into() };
            let task = match task::read(&call.input) {
                Ok(task) => task,
                Err(why) => return Outcome::failure(why).into(),
            };
            let run = SubagentRun { runtime, parent: call.session, call: call.call };
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => run.stop().await.into(),
                outcome = run.run_to_end(task) => outcome.into(),
            }
        })
    }
}

fn stopped() -> Outcome {
    Outcome::ended(Ending::Cancelled, "the subagent was stopped")
}
