//! Sends calls to the client: adjacent calls of a step are sent together as a bundle.
//!
//! A run is a sequence of calls for the client. It is held until each of them has either started or ended
//! otherwise, because only then is the bundle known.

use quintet_kernel::CallId;
use quintet_kernel::event::RequestedCall;
use serde_json::{Value, json};

/// The calls of a turn that are with the client, or about to be.
#[derive(Debug, Default)]
pub(crate) struct ToolDispatch {
    held: Vec<Vec<HeldCall>>,
    handed: Vec<DispatchedCalls>,
}

#[derive(Debug)]
struct HeldCall {
    call: CallId,
    /// True until the call has begun, or ended without that.
    is_open: bool,
    begun: Option<PendingCall>,
}

/// A call that the client should run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingCall {
    pub(crate) call: CallId,
    /// The client's name for it.
    pub(crate) request: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
}

/// Calls that the client was handed together, as far as they are not over.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DispatchedCalls(Vec<PendingCall>);

impl ToolDispatch {
    /// The model asks for calls; `client` says which tools the client runs.
    pub(crate) fn asked(&mut self, calls: &[RequestedCall], client: impl Fn(&str) -> bool) {
        let runs = calls.chunk_by(|one, next| client(&one.tool) == client(&next.tool));
        let held =
            |call: &RequestedCall| HeldCall { call: call.id.clone(), is_open: true, begun: None };
        let delegated = runs.filter(|run| client(&run[0].tool));
        self.held = delegated.map(|run| run.iter().map(held).collect()).collect();
    }

    /// A call begins; gives what is to be handed over now.
    pub(crate) fn begun(&mut self, pending: PendingCall) -> Option<DispatchedCalls> {
        let call = pending.call.clone();
        if self.find(&call).is_none() {
            self.held.push(vec![HeldCall { call: call.clone(), is_open: true, begun: None }]);
        }
        self.release(&call, Some(pending))
    }

    /// A call is over; gives what was only waiting for that.
    pub(crate) fn over(&mut self, call: &CallId) -> Option<DispatchedCalls> {
        self.handed.iter_mut().for_each(|handed| handed.0.retain(|pending| pending.call != *call));
        self.handed.retain(|handed| !handed.0.is_empty());
        self.release(call, None)
    }

    /// What the client still has to run, to be handed over once more.
    pub(crate) fn again(&self) -> Vec<DispatchedCalls> {
        self.handed.clone()
    }

    fn find(&mut self, call: &CallId) -> Option<&mut HeldCall> {
        self.held.iter_mut().flatten().find(|held| held.call == *call)
    }

    /// Notes that a call is open no more, and hands its run over if nothing of that is.
    fn release(&mut self, call: &CallId, begun: Option<PendingCall>) -> Option<DispatchedCalls> {
        let held = self.find(call)?;
        (held.is_open, held.begun) = (false, begun);
        let has = |run: &Vec<HeldCall>| run.iter().any(|held| held.call == *call);
        let n = self.held.iter().position(has)?;
        if self.held[n].iter().any(|held| held.is_open) {
            return None;
        }
        let calls = self.held.remove(n).into_iter().filter_map(|held| held.begun);
        let handed = DispatchedCalls(calls.collect());
        self.handed.extend(Some(handed.clone()).filter(|handed| !handed.0.is_empty()));
        Some(handed).filter(|handed| !handed.0.is_empty())
    }
}

impl DispatchedCalls {
    /// The message that hands the calls over: its type and payload.
    pub(crate) fn message(&self) -> (&'static str, Value) {
        match self.0.as_slice() {
            [pending] => ("tool-call", pending.payload(false)),
            // The name is that of the first, which somebody still waits for.
            calls => {
                let bundle = calls.first().map(|pending| &pending.request);
                let tools: Vec<Value> = calls.iter().map(PendingCall::step).collect();
                ("tool-bundle", json!({ "bundle_id": bundle, "tools": tools }))
            }
        }
    }

    pub(crate) fn calls(&self) -> Vec<CallId> {
        self.0.iter().map(|pending| pending.call.clone()).collect()
    }

    /// The payload of a message that hands nothing over any more.
    pub(crate) fn shown(&self) -> Value {
        let (kind, mut payload) = self.message();
        if kind == "tool-call" {
            skip(&mut payload["metadata"]);
        } else {
            payload["tools"] = json!([]);
        }
        payload
    }
}

/// Has clients, old and new, only show a call.
fn skip(metadata: &mut Value) {
    metadata["skip_local_execution"] = true.into();
    metadata["skip_frontend_execution"] = true.into();
}

impl PendingCall {
    /// The call alone. The client only shows those that are run elsewhere.
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

    /// The call as one of several.
    fn step(&self) -> Value {
        json!({ "name": self.tool, "args": self.input, "tool_call_id": self.call.as_str() })
    }
}
