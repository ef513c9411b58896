//! Sends calls to the client: adjacent calls of a step are sent together as a bundle.
//!
//! A run is a sequence of calls for the client. It is held until each of them has either started or ended
//! otherwise, because only then is the bundle known.

use quintet_kernel::CallId;
use quintet_kernel::event::RequestedCall;
use serde_json::{Value, json};

/// The calls of a turn that the client runs or will run.
#[derive(Debug, Default)]
pub(crate) struct ToolDispatch {
    held: Vec<Vec<HeldCall>>,
    /// Calls that were handed over together, without those that ended.
    pub(crate) handed: Vec<Vec<PendingCall>>,
}

#[derive(Debug)]
struct HeldCall {
    call: CallId,
    /// True until the call has started, or ended without that.
    is_open: bool,
    started: Option<PendingCall>,
}

/// A call that the client should run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingCall {
    pub(crate) call: CallId,
    /// The id by which the client returns the result.
    pub(crate) request: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
}

impl ToolDispatch {
    /// Notes the calls that a model requests; `client` is true for tools that the client runs.
    pub(crate) fn requested(&mut self, calls: &[RequestedCall], client: impl Fn(&str) -> bool) {
        let runs = calls.chunk_by(|one, next| client(&one.tool) == client(&next.tool));
        let runs = runs.filter(|run| client(&run[0].tool));
        self.held = runs.map(|run| run.iter().map(|call| held(&call.id)).collect()).collect();
    }

    /// Notes that a call started; returns the calls to hand over now.
    pub(crate) fn started(&mut self, pending: PendingCall) -> Option<Vec<PendingCall>> {
        let call = pending.call.clone();
        if self.held.iter().flatten().all(|held| held.call != call) {
            self.held.push(vec![held(&call)]);
        }
        self.release(&call, Some(pending))
    }

    /// Notes that a call ended; returns the calls that only waited for that.
    pub(crate) fn ended(&mut self, call: &CallId) -> Option<Vec<PendingCall>> {
        self.handed.iter_mut().for_each(|calls| calls.retain(|pending| pending.call != *call));
        self.handed.retain(|calls| !calls.is_empty());
        self.release(call, None)
    }

    /// Hands the run of a call over if none of its calls is open any more.
    fn release(&mut self, call: &CallId, started: Option<PendingCall>) -> Option<Vec<PendingCall>> {
        let has = |run: &Vec<HeldCall>| run.iter().any(|held| held.call == *call);
        let nth = self.held.iter().position(has)?;
        let held = self.held[nth].iter_mut().find(|held| held.call == *call)?;
        (held.is_open, held.started) = (false, started);
        if self.held[nth].iter().any(|held| held.is_open) {
            return None;
        }
        let calls: Vec<PendingCall> =
            self.held.remove(nth).into_iter().filter_map(|held| held.started).collect();
        if calls.is_empty() {
            return None;
        }
        self.handed.push(calls.clone());
        Some(calls)
    }
}

fn held(call: &CallId) -> HeldCall {
    HeldCall { call: call.clone(), is_open: true, started: None }
}

/// The type and payload of the message that hands calls over.
pub(crate) fn handover(calls: &[PendingCall]) -> (&'static str, Value) {
    match calls {
        [pending] => ("tool-call", pending.payload(false)),
        // A bundle has the id of its first call that has no result yet.
        calls => {
            let bundle = calls.first().map(|pending| &pending.request);
            ("tool-bundle", json!({ "bundle_id": bundle, "tools": steps(calls) }))
        }
    }
}

/// Replaces the calls of a payload, which stays a single call or a bundle.
pub(crate) fn replace_calls(payload: &mut Value, calls: &[PendingCall]) {
    if payload.get("tools").is_some() {
        payload["tools"] = steps(calls);
    } else if let Some(pending) = calls.first() {
        payload["parameters"] = pending.input.clone();
    }
}

/// Changes a payload so that clients only show its calls.
pub(crate) fn show_only(payload: &mut Value) {
    if payload.get("tools").is_some() {
        payload["tools"] = json!([]);
    } else {
        skip(&mut payload["metadata"]);
    }
}

/// The calls of a bundle.
fn steps(calls: &[PendingCall]) -> Value {
    let step = |PendingCall { call, tool, input, .. }: &PendingCall| json!({ "name": tool, "args": input, "tool_call_id": call.as_str() });
    calls.iter().map(step).collect()
}

/// Marks a call that clients only show; older clients read the second name.
fn skip(metadata: &mut Value) {
    metadata["skip_local_execution"] = true.into();
    metadata["skip_frontend_execution"] = true.into();
}

impl PendingCall {
    /// The payload of the call alone. Clients only show a call that runs elsewhere.
    pub(crate) fn payload(&self, elsewhere: bool) -> Value {
        let call = self.call.as_str();
        let mut metadata = json!({ "tool_call_id": call });
        if elsewhere {
            skip(&mut metadata);
        }
        json!({
            "tool_call_id": call,
            "tool_name": self.tool,
            "parameters": self.input,
            "request_id": self.request,
            "metadata": metadata,
        })
    }
}
