//! A step as an OpenAI chat completion.

use axum::body::Bytes;
use serde_json::{Value, json};

use super::script::Step;

/// The answer in one body.
pub(super) fn whole(step: &Step, body: &Value) -> Value {
    let text = step.deltas.concat().repeat(step.repeat);
    let mut message = json!({"role": "assistant", "content": (!text.is_empty()).then_some(text)});
    if !step.thought.is_empty() {
        message["reasoning_content"] = json!(step.thought);
    }
    if !step.tools.is_empty() {
        let calls = step.tools.iter().enumerate().map(|(n, tool)| call(tool, n, body).0);
        message["tool_calls"] = calls.collect();
    }
    let mut answer = base(body, "chat.completion");
    answer["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish(step)}]);
    answer["usage"] = usage(step, body);
    answer
}

/// The answer as server-sent events. The repeated middle is stored once.
pub(super) struct Frames {
    head: Vec<Bytes>,
    middle: Vec<Bytes>,
    repeat: usize,
    tail: Vec<Bytes>,
    at: usize,
}

impl Frames {
    pub(super) fn new(step: &Step, body: &Value) -> Self {
        let event = |delta: Value, finish: Option<&str>| {
            let mut event = base(body, "chat.completion.chunk");
            event["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
            frame(&event.to_string())
        };
        let mut head = vec![event(json!({"role": "assistant", "content": ""}), None)];
        if !step.thought.is_empty() {
            head.push(event(json!({"reasoning_content": step.thought}), None));
        }
        let text = step.deltas.iter().map(|delta| event(json!({"content": delta}), None));
        let middle = text.collect();
        let mut tail: Vec<_> = call_deltas(step, body).map(|delta| event(delta, None)).collect();
        if step.garbage {
            tail.push(frame(r#"{"choices":[{"delta":{"content":"#));
        }
        if !step.hang && !step.cut {
            tail.push(event(json!({}), Some(finish(step))));
            tail.extend(closing(step, body));
        }
        Self { head, middle, repeat: step.repeat, tail, at: 0 }
    }

    /// True if the next frame is the last one with text.
    pub(super) fn is_at_last_text(&self) -> bool {
        self.at + 1 == self.head.len() + self.middle.len() * self.repeat
    }
}

impl Iterator for Frames {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let at = self.at;
        self.at += 1;
        let (head, middle) = (self.head.len(), self.middle.len() * self.repeat);
        if at < head {
            self.head.get(at).cloned()
        } else if at < head + middle {
            self.middle.get((at - head) % self.middle.len()).cloned()
        } else {
            self.tail.get(at - head - middle).cloned()
        }
    }
}

fn closing(step: &Step, body: &Value) -> impl Iterator<Item = Bytes> {
    let wanted = body["stream_options"]["include_usage"] == json!(true);
    let usage = wanted.then(|| {
        let mut event = base(body, "chat.completion.chunk");
        event["choices"] = json!([]);
        event["usage"] = usage(step, body);
        frame(&event.to_string())
    });
    usage.into_iter().chain([frame("[DONE]")])
}

/// Each call is sent in three pieces: its name, and its arguments in halves.
fn call_deltas(step: &Step, body: &Value) -> impl Iterator<Item = Value> {
    step.tools.iter().enumerate().flat_map(|(n, tool)| {
        let (mut first, args) = call(tool, n, body);
        first["index"] = json!(n);
        first["function"]["arguments"] = json!("");
        let (left, right) = args.split_at(args.floor_char_boundary(args.len() / 2));
        let more = |part: &str| json!({"index": n, "function": {"arguments": part}});
        let pieces = [first, more(left), more(right)];
        pieces.map(|piece| json!({"tool_calls": [piece]}))
    })
}

fn call(tool: &Value, n: usize, body: &Value) -> (Value, String) {
    let turn = body["messages"].as_array().map_or(0, Vec::len);
    let id = tool["id"].as_str().map_or_else(|| format!("call_{turn}_{n}"), str::to_owned);
    let args = tool.get("args").map_or_else(|| "{}".to_owned(), Value::to_string);
    let function = json!({"name": tool["name"], "arguments": args});
    (json!({"id": id, "type": "function", "function": function}), args)
}

fn finish(step: &Step) -> &'static str {
    if step.tools.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(step: &Step, body: &Value) -> Value {
    let guess = [(body.to_string().len() / 4) as u64, (step.deltas.len() * step.repeat) as u64];
    let counts = step.usage.as_deref().unwrap_or(&guess);
    let count = |n: usize| counts.get(n).copied().unwrap_or_default();
    json!({
        "prompt_tokens": count(0),
        "completion_tokens": count(1),
        "total_tokens": count(0) + count(1),
        "prompt_tokens_details": {"cached_tokens": count(2)},
        "completion_tokens_details": {"reasoning_tokens": count(3)},
    })
}

fn base(body: &Value, object: &str) -> Value {
    json!({"id": "chatcmpl-fake", "object": object, "created": 1, "model": body["model"]})
}

fn frame(data: &str) -> Bytes {
    format!("data: {data}\n\n").into()
}
