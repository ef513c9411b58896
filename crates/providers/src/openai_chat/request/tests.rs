//! Prompts and the bodies they become.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{ModelRef, Said, Sampling};
use quintet_kernel::{BlobId, CallId};
use serde_json::json;

use super::*;
use quintet_kernel::tool;
use serde_json::Value;

const ALL: Profile = Profile { inputs: Vec::new(), tools: true, context_window: None };

fn prompt(messages: Vec<PromptMessage>) -> Prompt {
    Prompt {
        model: ModelRef { provider: "p".into(), model: "vendor/m".into() },
        system: "be brief".into(),
        messages,
        tools: Vec::new(),
        sampling: Sampling::default(),
    }
}

fn sent(prompt: &Prompt) -> Value {
    serde_json::from_slice(&body(prompt, &ALL, &Offer::default()).unwrap()).unwrap()
}

fn text(text: &str) -> PromptPart {
    PromptPart::Text(text.into())
}

fn media(kind: MediaKind, name: &str, mime: &str, content: &[u8]) -> PromptPart {
    let blob = BlobId::parse("00").unwrap();
    PromptPart::Media { kind, name: name.into(), mime: mime.into(), blob, content: content.into() }
}

fn content(parts: Vec<PromptPart>) -> Value {
    sent(&prompt(vec![PromptMessage::User(parts)]))["messages"][1]["content"].clone()
}

#[test]
fn tools_are_written_anew_only_when_they_change() {
    let offer = Offer::default();
    let spec = |name: &str| {
        std::sync::Arc::new(tool::Spec {
            name: name.into(),
            description: "does".into(),
            schema: serde_json::json!({}),
            kind: tool::Kind::Read,
            placement: tool::Placement::Daemon,
        })
    };
    let (one, two) = (vec![spec("one")], vec![spec("two")]);
    let first = offer.written(&one).unwrap().unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &offer.written(&one).unwrap().unwrap()));
    assert!(offer.written(&two).unwrap().unwrap().get().contains("two"));
    assert_eq!(offer.written(&one).unwrap().unwrap().get(), first.get());
    assert!(offer.written(&[]).unwrap().is_none());
}

#[test]
fn a_conversation() {
    let call = CallId::parse("call_1").unwrap();
    let mut prompt = prompt(vec![
        PromptMessage::User(vec![text("list "), text("files")]),
        PromptMessage::Assistant {
            by: None,
            parts: vec![Said::Call(PromptCall {
                call: call.clone(),
                tool: "shell".into(),
                input: json!({"command": "ls"}),
            })],
        },
        PromptMessage::Result {
            call,
            tool: "shell".into(),
            text: "a.txt".into(),
            media: Vec::new(),
            ok: true,
        },
        PromptMessage::Assistant { by: None, parts: vec![Said::Text("one".into())] },
    ]);
    prompt.tools.push(Arc::new(tool::Spec {
        name: "shell".into(),
        description: "runs".into(),
        schema: json!({"type": "object"}),
        kind: tool::Kind::Exec,
        placement: tool::Placement::Daemon,
    }));
    prompt.sampling = Sampling { max_tokens: Some(9), temperature: Some(0.5), effort: None };
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
    let without = Profile { tools: false, ..ALL };
    let body: Value =
        serde_json::from_slice(&body(&prompt, &without, &Offer::default()).unwrap()).unwrap();
    assert_eq!(body.get("tools"), None);
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

#[test]
fn other_audio_is_refused() {
    let ogg = media(MediaKind::Audio, "a.ogg", "audio/ogg", b"");
    let refused =
        body(&prompt(vec![PromptMessage::User(vec![ogg])]), &ALL, &Offer::default()).unwrap_err();
    assert_eq!(refused.kind, FailureKind::UnsupportedInput);
}
