//! Tests of request bodies.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{
    AssistantPart, Constraints, Effort, ModelRef, Profile, Prompt, Sampling, SearchSupport,
    WebSearch,
};
use quintet_kernel::{BlobId, CallId};
use serde_json::json;

use super::*;
use crate::facts::Facts;
use quintet_kernel::tool;
use serde_json::Value;

fn prompt(messages: Vec<PromptMessage>) -> Prompt {
    Prompt {
        model: ModelRef { provider: "p".into(), model: "vendor/m".into() },
        system: "be brief".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    }
}

fn sent(prompt: &Prompt) -> Value {
    sent_to(prompt, &Quirks::default())
}

fn sent_to(prompt: &Prompt, quirks: &Quirks) -> Value {
    let profile = Profile {
        inputs: Vec::new(),
        tools: true,
        context_window: None,
        search: SearchSupport::Never,
    };
    let facts = Facts::unknown(profile);
    let offered = (!prompt.tools.is_empty()).then(|| tools(&prompt.tools).unwrap());
    let model_request =
        ModelRequest { prompt, facts: &facts, quirks, tools: offered.as_deref(), search: false };
    serde_json::from_slice(&body(&model_request).unwrap()).unwrap()
}

fn text(text: &str) -> PromptPart {
    PromptPart::Text(text.into())
}

fn media(kind: MediaKind, name: &str, mime: &str, content: &[u8]) -> PromptPart {
    let blob = BlobId::parse("00").unwrap();
    let (name, mime, content) = (name.into(), mime.into(), content.into());
    PromptPart::Media { kind, name, mime, blob, content, detail: None }
}

fn content(parts: Vec<PromptPart>) -> Value {
    sent(&prompt(vec![PromptMessage::User(parts)]))["messages"][1]["content"].clone()
}

#[test]
fn a_conversation() {
    let call = CallId::parse("call_1").unwrap();
    let mut prompt = prompt(vec![
        PromptMessage::User(vec![text("list "), text("files")]),
        PromptMessage::Assistant {
            by: None,
            parts: vec![AssistantPart::Call(PromptCall::new(
                call.clone(),
                "shell",
                json!({"command": "ls"}),
            ))],
        },
        PromptMessage::Result {
            call,
            tool: "shell".into(),
            text: "a.txt".into(),
            media: Vec::new(),
            ok: true,
        },
        PromptMessage::Assistant { by: None, parts: vec![AssistantPart::Text("one".into())] },
    ]);
    prompt.tools.push(Arc::new(tool::ToolSpec {
        name: "shell".into(),
        description: "runs".into(),
        schema: json!({"type": "object"}),
        kind: tool::ToolKind::Exec,
        placement: tool::Placement::Daemon,
        strict: false,
    }));
    prompt.sampling =
        Sampling { max_tokens: Some(9), temperature: Some(0.5), ..Sampling::default() };
    let function = json!({"name": "shell", "arguments": r#"{"command":"ls"}"#});
    let offered = json!({"name": "shell", "description": "runs", "parameters": {"type": "object"}});
    let expected = json!({
        "model": "vendor/m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "list files"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "call_1", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
            {"role": "assistant", "content": "one"},
        ],
        "tools": [{"type": "function", "function": offered}],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 9,
        "temperature": 0.5,
    });
    assert_eq!(sent(&prompt), expected);
}

#[test]
fn sampling_parameters_are_sent() {
    let call = CallId::parse("call_1").unwrap();
    let written = Some("{ \"a\":1}".to_owned());
    let called = PromptCall { written, ..PromptCall::new(call, "shell", json!({"a": 1})) };
    let mut prompt = prompt(vec![
        PromptMessage::Assistant { by: None, parts: vec![AssistantPart::Call(called)] },
        PromptMessage::System("in French".into()),
    ]);
    prompt.tools.push(Arc::new(tool::ToolSpec {
        name: "shell".into(),
        description: String::new(),
        schema: json!({"type": "object"}),
        kind: tool::ToolKind::Network,
        placement: tool::Placement::Client,
        strict: false,
    }));
    let schema = json!({"type": "object"});
    let constraints = |tool_choice| Constraints {
        top_p: Some(0.5),
        stop: vec!["X".into()],
        tool_choice,
        format: Some(OutputFormat::Schema {
            name: "n".into(),
            schema: schema.clone(),
            strict: true,
        }),
    };
    prompt.sampling.constraints = constraints(ToolChoice::Named("shell".into())).unless_empty();
    let body = sent(&prompt);
    assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], "{ \"a\":1}");
    assert_eq!(body["messages"][2], json!({"role": "system", "content": "in French"}));
    let function = json!({"name": "shell", "parameters": {"type": "object"}});
    assert_eq!(body["tools"], json!([{"type": "function", "function": function}]));
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "shell"}}));
    assert_eq!((&body["top_p"], &body["stop"]), (&json!(0.5), &json!(["X"])));
    let format = json!({"name": "n", "schema": schema, "strict": true});
    assert_eq!(body["response_format"], json!({"type": "json_schema", "json_schema": format}));
    prompt.sampling.constraints = constraints(ToolChoice::Required).unless_empty();
    assert_eq!(sent(&prompt)["tool_choice"], "required");
    prompt.tools.clear();
    assert_eq!(sent(&prompt)["tool_choice"], Value::Null, "there is no tool to choose");
}

#[test]
fn vendors_have_their_own_field_names() {
    let sampling =
        Sampling { max_tokens: Some(9), effort: Some(Effort::High), ..Sampling::default() };
    let prompt = Prompt { sampling, ..prompt(Vec::new()) };
    let check = |quirks: Quirks, key: &str, value: Value| {
        assert_eq!(sent_to(&prompt, &quirks)[key], value);
    };
    let effort = |effort| Quirks { effort, ..Quirks::default() };
    check(effort(EffortStyle::Word), "reasoning_effort", json!("high"));
    check(effort(EffortStyle::Object), "reasoning", json!({"effort": "high"}));
    check(effort(EffortStyle::Switch), "thinking", json!({"type": "enabled"}));
    check(effort(EffortStyle::None), "reasoning_effort", Value::Null);
    let long = || Quirks { max_completion_tokens: true, ..Quirks::default() };
    check(long(), "max_completion_tokens", json!(9));
    check(long(), "max_tokens", Value::Null);
    check(Quirks { stream_options: false, ..long() }, "stream_options", Value::Null);
}

#[test]
fn media_become_parts() {
    let parts = content(vec![
        text("look"),
        media(MediaKind::Image, "a.png", "image/png", b"\x89P"),
        media(MediaKind::Audio, "a.wav", "audio/x-wav", b"RI"),
        media(MediaKind::File, "a.pdf", "application/pdf", b"%P"),
    ]);
    let expected = json!([
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVA="}},
        {"type": "input_audio", "input_audio": {"data": "Ukk=", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVA="}},
    ]);
    assert_eq!(parts, expected);
}

#[test]
fn text_files_become_text() {
    let file = media(MediaKind::File, "a \"b\".txt", "text/plain; charset=utf-8", b"x\xffy");
    let expected = "<file name=\"a \\\"b\\\".txt\">\nx\u{fffd}y\n</file>";
    assert_eq!(content(vec![file]), json!([{"type": "text", "text": expected}]));
}
