//! Calls that the daemon delegates to the worker, and their results.

use serde_json::{Value, json};

use super::toolkit::{ToolCall, ToolOutput};

/// The calls of one message of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DelegatedCalls {
    /// The name under which results are sent back.
    pub(super) request: String,
    pub(super) calls: Vec<ToolCall>,
    bundle: bool,
}

impl DelegatedCalls {
    /// The calls in a frame; `None` if it delegates none.
    pub(super) fn of(frame: &Value, turn: &str) -> Option<Self> {
        let payload = &frame["payload"];
        let text = |value: &Value| value.as_str().map(String::from);
        match frame["type"].as_str()? {
            "tool-call" if payload["metadata"]["skip_local_execution"] != true => {
                let request = text(&payload["request_id"])?;
                let call = ToolCall {
                    id: text(&payload["metadata"]["tool_call_id"]).unwrap_or(request.clone()),
                    turn: turn.to_owned(),
                    tool: text(&payload["tool_name"])?,
                    input: payload["parameters"].clone(),
                };
                Some(Self { request, calls: vec![call], bundle: false })
            }
            "tool-bundle" => {
                let step = |step: &Value| {
                    Some(ToolCall {
                        id: text(&step["tool_call_id"])?,
                        turn: turn.to_owned(),
                        tool: text(&step["name"])?,
                        input: step["args"].clone(),
                    })
                };
                let calls: Vec<ToolCall> =
                    payload["tools"].as_array()?.iter().filter_map(step).collect();
                let request = text(&payload["bundle_id"])?;
                (!calls.is_empty()).then_some(Self { request, calls, bundle: true })
            }
            _ => None,
        }
    }

    /// The message with the results of the calls: its type and payload.
    pub(super) fn result(&self, outputs: &[ToolOutput]) -> (&'static str, Value) {
        if !self.bundle {
            let output = outputs.first().cloned();
            let output = output.unwrap_or_else(|| ToolOutput::failure("not run"));
            let error = (!output.ok).then_some(&output.text);
            let payload = json!({
                "request_id": self.request, "success": output.ok,
                "data": { "output": output.text }, "error": error,
            });
            return ("tool-result", payload);
        }
        let steps = self.calls.iter().zip(outputs).map(|(call, output)| {
            json!({
                "tool": call.tool,
                "status": if output.ok { "ok" } else { "error" },
                "output": output.text,
                "error": (!output.ok).then_some(&output.text),
            })
        });
        let well = outputs.iter().filter(|output| output.ok).count();
        let status = match well {
            all if all == self.calls.len() => "success",
            0 => "failure",
            _ => "partial_failure",
        };
        let steps: Vec<Value> = steps.collect();
        let payload = json!({ "bundle_id": self.request, "status": status, "step_results": steps });
        ("tool-bundle-result", payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_for_display_are_not_run() {
        let call = |metadata: Value| {
            let payload = json!({
                "tool_name": "list_dir", "parameters": {}, "request_id": "r1", "metadata": metadata,
            });
            DelegatedCalls::of(&json!({ "type": "tool-call", "payload": payload }), "t1")
        };
        let delegated = call(json!({ "tool_call_id": "c1" })).unwrap();
        assert_eq!((delegated.request.as_str(), delegated.calls[0].id.as_str()), ("r1", "c1"));
        assert_eq!(call(json!({ "skip_local_execution": true })), None);
        let empty = json!({ "type": "tool-bundle", "payload": { "bundle_id": "b", "tools": [] } });
        assert_eq!(DelegatedCalls::of(&empty, "t1"), None);
    }

    #[test]
    fn a_bundle_reports_the_result_of_each_step() {
        let step = |id: &str| json!({ "name": "x", "args": {}, "tool_call_id": id });
        let payload = json!({ "bundle_id": "b", "tools": [step("c1"), step("c2")] });
        let delegated =
            DelegatedCalls::of(&json!({ "type": "tool-bundle", "payload": payload }), "t").unwrap();
        let ok = ToolOutput { ok: true, text: "a".into() };
        let (kind, result) = delegated.result(&[ok.clone(), ToolOutput::failure("b")]);
        assert_eq!((kind, &result["status"]), ("tool-bundle-result", &json!("partial_failure")));
        assert_eq!(result["step_results"][1]["error"], "b");
        assert_eq!(delegated.result(&[ok.clone(), ok]).1["status"], "success");
    }
}
