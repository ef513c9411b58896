//! Tool calls that run in the daemon: assessed before they are approved, run, and cancelled.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::pictures::{LOOK_TOOL, session_pictures};
use quintet_kernel::port::{BoxFuture, CancelSignal, Invocation, ToolContext, ToolProgress};
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Risk};
use quintet_kernel::{CallId, State, Time, TurnId};
use tokio_util::sync::CancellationToken;

use crate::deps::RuntimeDeps;
use crate::runtime::{Runtime, Shared};
use crate::session::call_questions::CallQuestions;
use crate::session::store_output::store_output;
use crate::tail::Tail;

/// Assesses a call. A call that a client runs is assessed by its tool's stated risk.
pub(super) fn assess_call(
    deps: &RuntimeDeps,
    state: &State,
    id: &CallId,
) -> BoxFuture<'static, Command> {
    let found = invocation(state, id);
    let tool = found.as_ref().and_then(|(name, _)| deps.tool(state, name));
    let by_client = found.as_ref().and_then(|(name, call)| client_assessment(state, name, call));
    let call = id.clone();
    Box::pin(async move {
        let assessment = match (by_client, tool, found) {
            (Some(assessment), ..) => assessment,
            (None, Some(tool), Some((_, invocation))) => tool.assess(&invocation).await,
            (None, ..) => unknown_assessment("the tool is not there"),
        };
        Command::Assessed { call, assessment: assessment.into() }
    })
}

/// Runs a call. A cancelled tool that does not stop in time is abandoned.
pub(super) fn run_call(
    shared: &Arc<Shared>,
    state: &State,
    id: &CallId,
    tail: &Arc<Tail>,
    cancel: &CancellationToken,
) -> BoxFuture<'static, Command> {
    let (deps, runtime) = (shared.deps.clone(), Runtime::of(Arc::clone(shared)));
    let found = invocation(state, id);
    let tool = found.as_ref().and_then(|(name, _)| deps.tool(state, name));
    let (call, cancel) = (id.clone(), cancel.clone());
    let (tail, token) = (Arc::clone(tail), Arc::new(CallCancel(cancel.clone())));
    Box::pin(async move {
        let outcome = match (tool, found) {
            (Some(tool), Some((_, invocation))) => {
                let of = (invocation.turn.clone(), invocation.call.clone());
                let progress = Arc::new(CallProgress { of, tail, deps: deps.clone() });
                let (session, call) = (invocation.session.clone(), invocation.call.clone());
                let questions = Arc::new(CallQuestions { runtime, session, call });
                let context = ToolContext { progress, cancel: token, questions };
                let stop_within = deps.timing.stop_within;
                let output = tokio::select! {
                    output = tool.run(invocation, context) => output,
                    () = cancel_deadline(&cancel, stop_within) => {
                        Outcome::ended(Ending::Cancelled, "the tool did not stop and was given up").into()
                    }
                };
                store_output(&deps, output).await
            }
            _ => Outcome::failure("the tool is not there"),
        };
        Command::CallFinished { call, outcome }
    })
}

/// Resolves when a cancelled call has used up its time to stop.
async fn cancel_deadline(cancel: &CancellationToken, stop_within: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(stop_within).await;
}

/// The name of a call's tool, and the call as the tool gets it.
fn invocation(state: &State, id: &CallId) -> Option<(String, Invocation)> {
    let open = state.open.as_ref()?;
    let call = open.call(id)?;
    let (turn, workspace) = (open.id.clone(), state.workspace.clone());
    let (session, input) = (state.id.clone(), call.request.input.clone());
    // Only the tool that reads pictures needs them.
    let looks = call.request.tool == LOOK_TOOL;
    let pictures = if looks { session_pictures(state) } else { Vec::new() };
    let invocation = Invocation { session, call: id.clone(), turn, workspace, input, pictures };
    Some((call.request.tool.clone(), invocation))
}

/// The assessment of a call that a client runs; `None` if the daemon runs it.
fn client_assessment(state: &State, name: &str, call: &Invocation) -> Option<Assessment> {
    let tool = state.toolset.client_tool(name)?;
    let mut assessment = unknown_assessment("a client runs it");
    (assessment.risk, assessment.preview) = (tool.risk, call.input.to_string());
    Some(assessment)
}

/// The assessment of a call about which nothing is known.
pub(super) fn unknown_assessment(why: &str) -> Assessment {
    Assessment {
        risk: Risk::High,
        reasons: vec![why.into()],
        reversible: false,
        preview: String::new(),
        subject: CallSubject::default(),
        settled: None,
    }
}

/// Passes a call's output on to followers.
struct CallProgress {
    of: (TurnId, CallId),
    tail: Arc<Tail>,
    deps: RuntimeDeps,
}

impl ToolProgress for CallProgress {
    fn report(&self, text: &str) {
        let now: Time = self.deps.clock.now();
        self.tail.push_progress(self.of.clone(), text.into(), now);
    }
}

/// Passes the cancellation of a call on to its tool.
struct CallCancel(CancellationToken);

impl CancelSignal for CallCancel {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}
