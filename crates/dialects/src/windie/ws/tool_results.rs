//! Accepts results of calls that the client ran. Results that are no longer expected, or for another user's
//! calls, are ignored.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::Error;
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{CallId, SessionId, State};

use super::{Connection, RequestError};
use crate::windie::agent::tool_selection::is_own_tool;
use crate::windie::call_ids::Request;
use crate::windie::conversation::may_see;
use crate::windie::wire::tool_results::{BundleResult, ToolResult};

impl Connection {
    pub(super) async fn tool_result(&self, result: ToolResult) -> Result<(), RequestError> {
        let ToolResult { call, mut outcome, picture } = result;
        let Some((request, state)) = self.expected(&call).await? else { return Ok(()) };
        if let Some(picture) = picture {
            self.app.add_picture(&self.identity, &state.id, &mut outcome, picture).await?;
        }
        self.return_result(&request.session, request.call, outcome).await
    }

    pub(super) async fn bundle_result(&self, result: BundleResult) -> Result<(), RequestError> {
        let Some((request, state)) = self.expected(&result.bundle).await? else { return Ok(()) };
        for step in result.outcomes(&bundle(&state, &request.call)) {
            let mut outcome = step.outcome;
            if let Some(picture) = result.picture.clone().filter(|_| step.pictured) {
                self.app.add_picture(&self.identity, &state.id, &mut outcome, picture).await?;
            }
            self.return_result(&request.session, step.call, outcome).await?;
        }
        Ok(())
    }

    /// The call that a result is for, and its session; `None` if no call of this client expects it.
    async fn expected(&self, request: &str) -> Result<Option<(Request, Arc<State>)>, Error> {
        let Some(request) = Request::parse(request) else { return Ok(None) };
        let state = match self.app.ports.sessions.view(&request.session).await {
            Err(Error::NotFound(_)) => return Ok(None),
            state => state?,
        };
        let call = state.open.as_ref().and_then(|open| open.call(&request.call));
        let is_open = call.is_some_and(Call::with_client)
            && may_see(&self.app, &self.identity, &state.labels);
        let is_expected =
            is_open && self.held.may_return_result(&request.session, &request.call).await?;
        Ok(is_expected.then_some((request, state)))
    }

    pub(super) async fn return_result(
        &self,
        session: &SessionId,
        call: CallId,
        outcome: Outcome,
    ) -> Result<(), RequestError> {
        let by = self.held.client().clone();
        let command = Command::ReturnResult { call, by, outcome };
        match self.app.ports.sessions.submit(session, command).await {
            Ok(_) | Err(Error::Refused(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The calls of the bundle that begins with a call, with their tools.
fn bundle(state: &State, first: &CallId) -> Vec<(CallId, String)> {
    let is_ours = |call: &Call| {
        let tool = state.toolset.client_tool(&call.request.tool);
        tool.is_some_and(|tool| is_own_tool(tool.front_end.as_deref()))
    };
    let calls = state.open.iter().flat_map(|open| open.calls());
    let run = calls.skip_while(|call| call.id() != first).take_while(|call| is_ours(call));
    let open = run.filter(|call| matches!(call.phase, CallPhase::Started(_, Placement::Client)));
    open.map(|call| (call.id().clone(), call.request.tool.clone())).collect()
}
