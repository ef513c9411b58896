//! Calls on their way to the client: those of a step that stand next to each other go together.
//!
//! A run is a number of calls in a row that the client should run. It is held until each of them has
//! either begun or ended without that, because only then is it known which of them go together.

use quintet_kernel::CallId;
use quintet_kernel::event::RequestedCall;
use serde_json::{Value, json};

/// The calls of a turn that are with the client, or about to be.
#[derive(Debug, Default)]
pub(crate) struct ToolDispatch {
    held: Vec<Vec<Held>>,
    handed: Vec<DispatchedCalls>,
}

#[derive(Debug)]
struct Held {
    call: CallId,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Asked,
    Begun(PendingCall),
    Over,
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

/// Calls that the client was handed together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DispatchedCalls {
    errands: Vec<PendingCall>,
    done: Vec<CallId>,
}

impl ToolDispatch {
    /// The model asks for calls; `client` says which tools the client runs.
    pub(crate) fn asked(&mut self, calls: &[RequestedCall], client: impl Fn(&str) -> bool) {
        self.held.clear();
        let mut before = false;
        for call in calls {
            let delegated = client(&call.tool);
            let held = Held { call: call.id.clone(), stage: Stage::Asked };
            match self.held.last_mut() {
                Some(run) if delegated && before => run.push(held),
                _ if delegated => self.held.push(vec![held]),
                _ => {}
            }
            before = delegated;
        }
    }

    /// A call begins; gives what is to be handed over now.
    pub(crate) fn begun(&mut self, errand: PendingCall) -> Option<DispatchedCalls> {
        let call = errand.call.clone();
        match self.find(&call) {
            Some(held) => held.stage = Stage::Begun(errand),
            None => {
                let stage = Stage::Begun(errand);
                self.held.push(vec![Held { call: call.clone(), stage }]);
            }
        }
        self.release(&call)
    }

    /// A call is over; gives what was only waiting for that.
    pub(crate) fn over(&mut self, call: &CallId) -> Option<DispatchedCalls> {
        if let Some(held) = self.find(call) {
            held.stage = Stage::Over;
            return self.release(call);
        }
        for handed in &mut self.handed {
            if handed.errands.iter().any(|errand| errand.call == *call) {
                handed.done.push(call.clone());
            }
        }
        self.handed.retain(|handed| handed.done.len() < handed.errands.len());
        None
    }

    /// What the client still has to run, to be handed over once more.
    pub(crate) fn again(&self) -> Vec<DispatchedCalls> {
        self.handed.clone()
    }

    fn find(&mut self, call: &CallId) -> Option<&mut Held> {
        self.held.iter_mut().flatten().find(|held| held.call == *call)
    }

    /// Hands a run over if nothing of it is open any more.
    fn release(&mut self, call: &CallId) -> Option<DispatchedCalls> {
        let has = |run: &Vec<Held>| run.iter().any(|held| held.call == *call);
        let ready = |run: &Vec<Held>| !run.iter().any(|held| matches!(held.stage, Stage::Asked));
        let n = self.held.iter().position(|run| has(run) && ready(run))?;
        let errands: Vec<PendingCall> =
            self.held.remove(n).into_iter().filter_map(|held| held.stage.errand()).collect();
        if errands.is_empty() {
            return None;
        }
        let handed = DispatchedCalls { errands, done: Vec::new() };
        self.handed.push(handed.clone());
        Some(handed)
    }
}

impl Stage {
    fn errand(self) -> Option<PendingCall> {
        match self {
            Self::Begun(errand) => Some(errand),
            Self::Asked | Self::Over => None,
        }
    }
}

impl DispatchedCalls {
    /// The message that hands over what is not done of it: its type and payload.
    pub(crate) fn message(&self) -> (&'static str, Value) {
        let open = self.errands.iter().filter(|errand| !self.done.contains(&errand.call));
        match open.collect::<Vec<_>>().as_slice() {
            [errand] => ("tool-call", errand.payload(false)),
            // The name is that of the first, which somebody still waits for.
            errands => {
                let bundle = errands.first().map(|errand| &errand.request);
                let tools: Vec<Value> = errands.iter().map(|errand| errand.step()).collect();
                ("tool-bundle", json!({ "bundle_id": bundle, "tools": tools }))
            }
        }
    }
}

impl DispatchedCalls {
    /// What is not done of it.
    pub(crate) fn calls(&self) -> Vec<CallId> {
        let open = self.errands.iter().filter(|errand| !self.done.contains(&errand.call));
        open.map(|errand| errand.call.clone()).collect()
    }

    /// The payload of a message that hands nothing over any more.
    pub(crate) fn shown(&self) -> Value {
        match self.message() {
            ("tool-call", mut payload) => {
                skip(&mut payload["metadata"]);
                payload
            }
            (_, mut payload) => {
                payload["tools"] = json!([]);
                payload
            }
        }
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
