//! A conversation with everything: instructions, text, a picture, a thought, parallel calls,
//! results with and without a picture, and arguments that are not JSON.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::message::{MediaKind, Message, Part, Role};
use quintet_kernel::model::{
    AssistantPart, Channel, Chunk, Effort, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart,
    RawToolCall, Sampling, Sealed, WebSearch, assistant_calls,
};
use quintet_kernel::prompt::assistant_parts;
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use quintet_kernel::{BlobId, CallId, MessageId, Time, TurnId};
use serde_json::{Value, json};

use super::streams;
use crate::family::Family;

/// The called model.
pub(super) fn called_model() -> ModelRef {
    ModelRef { provider: "vendor".into(), model: "the-model".into() }
}

/// The conversation, with an earlier answer of the family from one of its streams.
pub(super) fn with(family: &dyn Family, stream: &Path, by: ModelRef) -> Prompt {
    let picture = |name: &str| PromptPart::Media {
        kind: MediaKind::Image,
        name: name.into(),
        mime: "image/png".into(),
        blob: BlobId::parse("00").unwrap(),
        content: b"\x89PNG".as_slice().into(),
        detail: None,
    };
    let text = |text: &str| PromptPart::Text(text.into());
    let mut messages = vec![PromptMessage::User(vec![text("What is this?"), picture("shot.png")])];
    let parts = answered(family, stream);
    let calls: Vec<PromptCall> = assistant_calls(&parts).cloned().collect();
    messages.push(PromptMessage::Assistant { by: Some(by.clone()), parts });
    for (n, call) in calls.into_iter().enumerate() {
        messages.push(PromptMessage::Result {
            call: call.call,
            tool: call.tool,
            text: format!("result {n}"),
            media: if n == 0 { vec![picture("result.png")] } else { Vec::new() },
            ok: n == 0,
        });
    }
    messages.push(PromptMessage::Assistant { by: Some(by), parts: broken() });
    messages.push(PromptMessage::Result {
        call: CallId::parse("call_9").unwrap(),
        tool: "read_file".into(),
        text: "the arguments are not valid JSON".into(),
        media: Vec::new(),
        ok: false,
    });
    messages.push(PromptMessage::User(vec![text("And now?")]));
    Prompt {
        model: called_model(),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![tool()],
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling { effort: Some(Effort::Medium), ..Sampling::default() },
        account: None,
    }
}

fn broken() -> Vec<AssistantPart> {
    let call = CallId::parse("call_9").unwrap();
    let input = Value::String("{\"path\": ".into());
    vec![AssistantPart::Call(PromptCall::new(call, "read_file", input))]
}

fn tool() -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        schema: json!({"type": "object", "properties": {"path": {"type": "string"}},
            "required": ["path"], "additionalProperties": false}),
        kind: ToolKind::Read,
        placement: Placement::Daemon,
        strict: false,
    })
}

/// The parts of a streamed answer as they are stored and sent back.
fn answered(family: &dyn Family, stream: &Path) -> Vec<AssistantPart> {
    let bytes = std::fs::read(stream).unwrap();
    let (chunks, _) = streams::read(family, &[&bytes]);
    let mut parts = Vec::new();
    let mut sealed = Vec::new();
    for chunk in chunks {
        match chunk {
            Chunk::Output(Channel::Text, text) => parts.push(Part::Text(text)),
            Chunk::Output(Channel::Thought, text) => {
                parts.push(Part::Thought(text));
            }
            Chunk::Finished(answer) => {
                let call = |(n, request): (usize, RawToolCall)| Part::Call {
                    call: CallId::parse(&request.id)
                        .unwrap_or_else(|| CallId::parse(&format!("call_{n}")).unwrap()),
                    tool: request.tool,
                    input: serde_json::from_str(&request.arguments)
                        .unwrap_or(Value::String(request.arguments)),
                };
                parts.extend(answer.calls.into_iter().enumerate().map(call));
                sealed = answer.sealed;
            }
            Chunk::Retrying { .. } => {}
        }
    }
    assistant_parts(&message(parts, sealed))
}

fn message(parts: Vec<Part>, sealed: Vec<Sealed>) -> Message {
    Message {
        id: MessageId::parse("m1").unwrap(),
        role: Role::Assistant,
        parts,
        wording: None,
        at: Time::default(),
        turn: TurnId::parse("t1").unwrap(),
        attempt: 1,
        call: None,
        ending: None,
        interrupted: false,
        by: None,
        sealed,
        files: Vec::new(),
    }
}
