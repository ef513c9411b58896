//! The conversation of a request.

use std::borrow::Cow;

use quintet_kernel::model::{AssistantPart, PromptCall, PromptMessage, PromptPart};
use serde::Serialize;
use serde_json::{Value, json};

use crate::facts::{Thinking, visible};
use crate::family::ModelRequest;
use crate::inputs;
use crate::media::RequestText;

/// The signature that newer models accept for a call of another model.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<RequestText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<Blob<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<Response<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: String,
    data: RequestText<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    name: &'a str,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct Response<'a> {
    name: &'a str,
    response: FunctionResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum FunctionResult<'a> {
    Output(&'a str),
    Error(&'a str),
}

/// The conversation. Results of one answer, and their media, are one message.
pub(super) fn contents<'a>(model_request: &ModelRequest<'a>) -> Vec<Content<'a>> {
    let mut out: Vec<Content<'a>> = Vec::new();
    for message in &model_request.prompt.messages {
        match &**message {
            // Instructions are possible only at the beginning.
            PromptMessage::System(text) => push(&mut out, "user", [plain(text)]),
            PromptMessage::User(parts) => push(&mut out, "user", parts.iter().map(shown)),
            PromptMessage::Assistant { by, parts } => {
                let own: Vec<_> =
                    visible(&model_request.prompt.model, by.as_ref(), parts).collect();
                let strict = model_request.facts.thinking == Thinking::Effort;
                push(&mut out, "model", model_parts(&own, strict));
            }
            PromptMessage::Result { call: _, tool, text, media, ok } => {
                let response =
                    if *ok { FunctionResult::Output(text) } else { FunctionResult::Error(text) };
                let response = Response { name: tool, response };
                let response_part = Part { function_response: Some(response), ..Part::default() };
                push(&mut out, "user", [response_part].into_iter().chain(media.iter().map(shown)));
            }
        }
    }
    for content in &mut out {
        // Responses come first, in the order of their calls; pictures follow.
        content.parts.sort_by_key(|part| part.function_response.is_none());
    }
    out
}

fn push<'a>(
    out: &mut Vec<Content<'a>>,
    role: &'static str,
    parts: impl IntoIterator<Item = Part<'a>>,
) {
    let mut parts = parts.into_iter().peekable();
    if parts.peek().is_none() {
        return;
    }
    match out.last_mut() {
        Some(last) if last.role == role => last.parts.extend(parts),
        _ => out.push(Content { role, parts: parts.collect() }),
    }
}

/// The parts of a model's message. Thoughts are left out; signatures are sent back at their
/// positions.
fn model_parts<'a>(model_parts: &[&'a AssistantPart], strict: bool) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    let mut of_call = None;
    for part in model_parts {
        match part {
            AssistantPart::Text(text) => parts.push(plain(text)),
            AssistantPart::Thought(_) => {}
            AssistantPart::Sealed(content) => match (content["signature"].as_str(), &content["of"])
            {
                (Some(signature), of) if of == "call" => of_call = Some(signature),
                (Some(signature), of) if of == "text" => sign(&mut parts, signature),
                _ => {}
            },
            AssistantPart::Call(call) => {
                let first = parts.iter().all(|part| part.function_call.is_none());
                let unsigned = (strict && first).then_some(NOT_SIGNED);
                parts.push(called(call, of_call.take().or(unsigned)));
            }
        }
    }
    parts
}

/// A signature belongs to the text before it, if there is any.
fn sign<'a>(parts: &mut Vec<Part<'a>>, signature: &'a str) {
    match parts.last_mut() {
        Some(last) if last.text.is_some() && last.thought_signature.is_none() => {
            last.thought_signature = Some(signature);
        }
        _ => parts.push(Part { thought_signature: Some(signature), ..plain("") }),
    }
}

fn called<'a>(call: &'a PromptCall, signature: Option<&'a str>) -> Part<'a> {
    let args = match &call.input {
        object @ Value::Object(_) => Cow::Borrowed(object),
        other => Cow::Owned(json!({ "arguments": other })),
    };
    let function_call = Some(Call { name: &call.tool, args });
    Part { function_call, thought_signature: signature, ..Part::default() }
}

fn plain(text: &str) -> Part<'_> {
    Part { text: Some(RequestText::Plain(text)), ..Part::default() }
}

/// A part of a user message that [`inputs::fit`] has checked.
fn shown(part: &PromptPart) -> Part<'_> {
    match part {
        PromptPart::Text(text) => plain(text),
        PromptPart::Media { name, mime, content, .. } if inputs::is_text(mime) => {
            Part { text: Some(RequestText::TextFile { name, content }), ..Part::default() }
        }
        PromptPart::Media { mime, content, .. } => {
            let mime_type = inputs::essence(mime).replace("image/jpg", "image/jpeg");
            let data = RequestText::Base64(content);
            Part { inline_data: Some(Blob { mime_type, data }), ..Part::default() }
        }
    }
}
