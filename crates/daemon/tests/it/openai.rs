//! The OpenAI-compatible API over real sockets: providers' models, and the agent as a model.

mod bad_input;
mod chat;
mod responses;
mod senses;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::client::Client;

const PROXY: &str = "fake/fake";
const AGENT: &str = "quintet/fake/fake";
const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

/// A user message that the scripted model answers with these steps.
fn script(steps: Value) -> String {
    format!("go {{{{script: {steps}}}}}")
}

/// A request for a chat completion.
fn chat_body(model: &str, steps: Value) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": script(steps) }] })
}

/// A request for a response.
fn response_body(model: &str, steps: Value) -> Value {
    json!({ "model": model, "input": script(steps) })
}

/// A body with additional fields.
fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn weather() -> Value {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    json!({ "name": "weather", "description": "The weather in a city.", "parameters": parameters })
}

async fn post(client: &Client, path: &str, body: &Value) -> Response {
    let request = client.request(Method::POST, path).header("authorization", "Bearer anything");
    request.body(body.to_string()).send().await.unwrap()
}

/// The frames of a stream that fails; none if it failed before anything was sent, which is an error
/// response.
async fn failed_stream(client: &Client, path: &str, body: Value) -> Vec<Value> {
    let response = post(client, path, &with(body, json!({ "stream": true }))).await;
    if response.status() != 200 {
        assert!(response.status().is_server_error(), "{}", response.status());
        assert_eq!(response.headers()["x-should-retry"], "false");
        return Vec::new();
    }
    let text = response.text().await.unwrap();
    assert!(!text.contains("[DONE]"), "{text}");
    frames(&text)
}

/// The text of a completed stream.
async fn streamed(client: &Client, path: &str, body: Value) -> String {
    let response = post(client, path, &with(body, json!({ "stream": true }))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    response.text().await.unwrap()
}

/// The JSON of the events of a stream, without `[DONE]`.
fn frames(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The text of an answer in chunks.
fn content(frames: &[Value]) -> String {
    let deltas = frames.iter().map(|frame| &frame["choices"][0]["delta"]["content"]);
    deltas.filter_map(Value::as_str).collect()
}

/// The text of a response.
fn output_text(response: &Value) -> String {
    let items = response["output"].as_array().unwrap().iter();
    let parts = items.filter_map(|item| item["content"].as_array()).flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
