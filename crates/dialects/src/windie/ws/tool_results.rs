//! Accepts results of calls that the client ran. Results that are no longer expected, or for another user's
//! calls, are ignored.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::Error;
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{CallId, SessionId, State};

use super::{Connection, Trouble};
use crate::windie::agent::tool_selection::is_own_tool;
use crate::windie::call_ids::Request;
use crate::windie::conversation::may_see;
use crate::windie::wire::tool_results::{BundleResult, ToolResult};

impl Connection {
    pub(super) async fn result(&self, result: ToolResult) -> Result<(), Trouble> {
        let ToolResult { call, mut outcome, picture } = result;
        let Some((request, state)) = self.awaited(&call).await? else { return Ok(()) };
        if let Some(picture) = picture {
            self.app.illustrate(&self.identity, &state, &mut outcome, picture).await?;
        }
        self.hand_back(&request.session, request.call, outcome).await
    }

    pub(super) async fn bundle_result(&self, result: BundleResult) -> Result<(), Trouble> {
        let Some((request, state)) = self.awaited(&result.bundle).await? else { return Ok(()) };
        let calls = together(&state, &request.call);
        for came in result.outcomes(&calls) {
            let mut outcome = came.outcome;
            if let Some(picture) = result.picture.clone().filter(|_| came.pictured) {
                self.app.illustrate(&self.identity, &state, &mut outcome, picture).await?;
            }
            self.hand_back(&request.session, came.call, outcome).await?;
        }
        Ok(())
    }

    /// The call that a result is about, and its session as it is; nothing if no call waits for it.
    async fn awaited(&self, request: &str) -> Result<Option<(Request, Arc<State>)>, Trouble> {
        let Some(request) = Request::parse(request) else { return Ok(None) };
        let state = match self.app.ports.sessions.view(&request.session).await {
            Ok(state) => state,
            Err(Error::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let call = state.open.as_ref().and_then(|open| open.call(&request.call));
        let waits = call.is_some_and(Call::with_client)
            && may_see(&self.app, &self.identity, &state.labels);
        let mine = waits && self.held.may_return_result(&request.session, &request.call).await?;
        Ok(mine.then_some((request, state)))
    }

    pub(super) async fn hand_back(
        &self,
        session: &SessionId,
        call: CallId,
        outcome: Outcome,
    ) -> Result<(), Trouble> {
        let by = self.held.client().clone();
        let command = Command::ReturnResult { call, by, outcome };
        match self.app.ports.sessions.submit(session, command).await {
            Ok(_) | Err(Error::Refused(_) | Error::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The calls that were handed over together with one, from it on.
fn together(state: &State, first: &CallId) -> Vec<(CallId, String)> {
    let calls = state.open.iter().flat_map(|open| open.calls());
    let rest = calls.skip_while(|call| call.id() != first);
    let run = rest.take_while(|call| delegated(state, call));
    let open = run.filter(|call| matches!(call.phase, CallPhase::Started(_, Placement::Client)));
    open.map(|call| (call.id().clone(), call.request.tool.clone())).collect()
}

fn delegated(state: &State, call: &Call) -> bool {
    let tool = state.toolset.client_tool(&call.request.tool);
    tool.is_some_and(|tool| is_own_tool(tool.front_end.as_deref()))
}
