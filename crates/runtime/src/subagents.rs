//! Subagents: a model has a session of its own work on a task, and reads what came of it.
//!
//! The call only follows the other session, so it may be made again after a restart: it finds the
//! session that it began before and goes on following it.

mod run;
mod task;

use std::sync::{Arc, Weak};

use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::subagent::TOOL;
use quintet_kernel::tool::{Assessment, Ending, Kind, Outcome, Placement, Risk, Spec, Subject};

use crate::parts::Parts;
use crate::runtime::{Runtime, Shared};
use run::SubagentRun;
pub(crate) use run::cancel;

/// The tool's name.
pub const NAME: &str = TOOL;

/// What models are told of the tool.
pub fn spec() -> Spec {
    Spec {
        name: NAME.into(),
        description: "Have another agent work on a task of its own, in the same workspace, and read \
                      its answer. It knows nothing of this conversation, so say everything it needs. \
                      Several calls at once work side by side."
            .into(),
        schema: task::schema(),
        kind: Kind::Delegate,
        placement: Placement::Daemon,
    }
}

/// The parts with the tool among them, if the rules offer it.
pub(crate) fn joined(mut parts: Parts, shared: &Weak<Shared>) -> Parts {
    if parts.rules.tools.iter().any(|tool| tool.name == NAME) {
        let tool = Spawn { spec: Arc::new(spec()), shared: Weak::clone(shared) };
        parts.tools.insert(NAME.into(), Arc::new(tool));
    }
    parts
}

struct Spawn {
    spec: Arc<Spec>,
    shared: Weak<Shared>,
}

impl Tool for Spawn {
    fn spec(&self) -> Arc<Spec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let task = task::read(&call.input);
        let preview = task.as_ref().map(|task| task.text.clone()).unwrap_or_default();
        let assessment = Assessment {
            // What it does is judged when it does it.
            risk: Risk::Low,
            reasons: Vec::new(),
            reversible: true,
            preview,
            subject: Subject::default(),
            settled: task.err().map(Outcome::failure),
        };
        Box::pin(async move { assessment })
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
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
                () = desk.cancel.cancelled() => run.stop().await.into(),
                outcome = run.see_through(task) => outcome.into(),
            }
        })
    }
}

fn stopped() -> Outcome {
    Outcome::ended(Ending::Cancelled, "the subagent was stopped")
}
