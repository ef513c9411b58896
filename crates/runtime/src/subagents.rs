//! Subagents: a model has a session of its own work on a task, and reads what came of it.
//!
//! The call only follows the other session, so it may be made again after a restart: it finds the
//! session that it began before and goes on following it.

mod errand;
mod task;

use std::sync::{Arc, Weak};

use quintet_kernel::command::Command;
use quintet_kernel::event::Budget;
use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Sessions as _, Tool};
use quintet_kernel::tool::{Assessment, Ending, Kind, Outcome, Placement, Risk, Spec, Subject};

use crate::parts::Parts;
use crate::runtime::{Runtime, Shared};
use errand::Errand;
use task::Task;

/// The tool's name.
pub const NAME: &str = "spawn_agent";

/// How much subagents there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How deep subagents may have subagents: at 1 they have none, at 0 nobody has.
    pub depth: u32,
    /// How many of a session's subagents may work at once.
    pub at_once: usize,
    /// What each may take at most.
    pub budget: Budget,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 2, at_once: 8, budget: Budget::default() }
    }
}

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
        let task = Task::read(&call.input);
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
            let task = match Task::read(&call.input) {
                Ok(task) => task,
                Err(why) => return Outcome::failure(why).into(),
            };
            let errand = Errand { runtime, parent: call.session, call: call.call, task };
            let child = match errand.child(&call.workspace).await {
                Ok(child) => child,
                Err(why) => return Outcome::failure(why).into(),
            };
            tokio::select! {
                biased;
                () = desk.cancel.cancelled() => {
                    // Refused if the daemon shuts down: then the work goes on after the restart.
                    let cancel = Command::Cancel { reason: Some("the parent was cancelled".into()) };
                    let _ = errand.runtime.submit(&child, cancel).await;
                    stopped().into()
                }
                outcome = errand.see_through(&child) => outcome.into(),
            }
        })
    }
}

fn stopped() -> Outcome {
    Outcome::ended(Ending::Cancelled, "the subagent was stopped")
}
