//! Tests of the script language.

use serde_json::{Value, json};

use super::response::{Frames, whole};
use super::script::step_for;

fn body(messages: Value) -> Value {
    json!({"model": "fake", "messages": messages, "stream_options": {"include_usage": true}})
}

fn answer_text(messages: Value) -> String {
    let body = body(messages);
    let answer = whole(&step_for(&body), &body);
    answer["choices"][0]["message"]["content"].as_str().unwrap_or("(nothing)").to_owned()
}

#[test]
fn the_server_echoes_without_a_script() {
    assert_eq!(answer_text(json!([{"role": "user", "content": "hello"}])), "echo: hello");
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(answer_text(json!([{"role": "user", "content": parts}])), "echo: ab");
}

#[test]
fn assistant_turns_since_the_script_select_the_step() {
    let script = r#"do {{script: [{"text":"one"},{"deltas":["t","w"],"repeat":2}]}} now"#;
    let mut history = vec![json!({"role": "user", "content": script})];
    assert_eq!(answer_text(json!(history)), "one");
    history.push(json!({"role": "assistant", "content": "one"}));
    history.push(json!({"role": "tool", "content": "result"}));
    assert_eq!(answer_text(json!(history)), "twtw");
    history.push(json!({"role": "assistant", "content": "twtw"}));
    history.push(json!({"role": "user", "content": "more"}));
    assert_eq!(answer_text(json!(history)), "done");
}

#[test]
fn a_broken_script_is_an_error() {
    let body = body(json!([{"role": "user", "content": "{{script: [}}"}]));
    assert_eq!(step_for(&body).status, Some(400));
}

#[test]
fn frames_are_in_order_and_end_with_done() {
    let script = r#"{{script: [{"thought":"hm","deltas":["é"],"repeat":2,
        "tools":[{"name":"shell","args":{"command":"ls"}}],"usage":[3,4]}]}}"#;
    let body = body(json!([{"role": "user", "content": script}]));
    let frames: Vec<_> = Frames::new(&step_for(&body), &body).collect();
    let events = frames.iter().map(|frame| {
        let text = str::from_utf8(frame).unwrap();
        text.strip_prefix("data: ").unwrap().trim_end().to_owned()
    });
    let events: Vec<_> = events.collect();
    assert_eq!(events.len(), 10, "{events:#?}");
    assert_eq!(events[9], "[DONE]");
    let usage: Value = serde_json::from_str(&events[8]).unwrap();
    assert_eq!(usage["usage"]["total_tokens"], 7);
}
