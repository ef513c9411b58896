//! The items of a request: messages, calls and results, in order.

use std::borrow::Cow;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{AssistantPart, ImageDetail, PromptCall, PromptMessage, PromptPart};
use serde::Serialize;
use serde_json::Value;

use crate::facts::visible;
use crate::family::ModelRequest;
use crate::ids;
use crate::inputs;
use crate::media::RequestText;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: &'a str,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
    Reasoning {
        id: &'a Value,
        summary: &'a Value,
        encrypted_content: &'a Value,
    },
    /// An item that is sent back as it was received.
    #[serde(untagged)]
    Verbatim(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content<'a> {
    InputText {
        text: RequestText<'a>,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        image_url: RequestText<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<&'static str>,
    },
    InputFile {
        filename: &'a str,
        file_data: RequestText<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

/// The conversation.
pub(super) fn items<'a>(model_request: &ModelRequest<'a>) -> Vec<Item<'a>> {
    let mut out = Vec::new();
    for message in &model_request.prompt.messages {
        match &**message {
            PromptMessage::System(text) => {
                let content = vec![Content::InputText { text: RequestText::Plain(text) }];
                out.push(Item::Message { role: "developer", content });
            }
            PromptMessage::User(parts) => {
                let content = parts.iter().map(shown).collect();
                out.push(Item::Message { role: "user", content });
            }
            PromptMessage::Assistant { by, parts } => {
                let own: Vec<_> =
                    visible(&model_request.prompt.model, by.as_ref(), parts).collect();
                model_blocks(&own, &mut out);
            }
            PromptMessage::Result { call, tool: _, text, media, ok: _ } => {
                let output = output(text, media);
                out.push(Item::FunctionCallOutput { call_id: ids::bounded(call), output });
            }
        }
    }
    out
}

/// The items of a model's message. The API rejects a sealed thought or search without a following
/// item.
fn model_blocks<'a>(parts: &[&'a AssistantPart], out: &mut Vec<Item<'a>>) {
    for (n, part) in parts.iter().enumerate() {
        let followed = || {
            let rest = parts.iter().skip(n + 1);
            rest.into_iter()
                .any(|part| matches!(part, AssistantPart::Text(_) | AssistantPart::Call(_)))
        };
        match part {
            AssistantPart::Text(text) => {
                let content = vec![Content::OutputText { text }];
                out.push(Item::Message { role: "assistant", content });
            }
            // The sealed item contains the summary.
            AssistantPart::Thought(_) => {}
            AssistantPart::Sealed(content) if followed() => out.extend(sealed(content)),
            AssistantPart::Sealed(_) => {}
            AssistantPart::Call(call) => out.push(called(call)),
        }
    }
}

fn sealed(content: &Value) -> Option<Item<'_>> {
    if let Some(item) = content.get("item").filter(|item| item.is_object()) {
        return Some(Item::Verbatim(item));
    }
    Some(Item::Reasoning {
        id: content.get("id")?,
        summary: content.get("summary")?,
        encrypted_content: content.get("encrypted_content")?,
    })
}

fn called(call: &PromptCall) -> Item<'_> {
    Item::FunctionCall {
        call_id: ids::bounded(&call.call),
        name: &call.tool,
        arguments: call.arguments(),
    }
}

fn output<'a>(text: &'a str, media: &'a [PromptPart]) -> Output<'a> {
    if media.is_empty() {
        return Output::Text(text);
    }
    let text = Content::InputText { text: RequestText::Plain(text) };
    Output::Parts([text].into_iter().chain(media.iter().map(shown)).collect())
}

/// A part of a user message that [`inputs::fit`] has checked.
fn shown(part: &PromptPart) -> Content<'_> {
    let (kind, name, mime, content, detail) = match part {
        PromptPart::Text(text) => return Content::InputText { text: RequestText::Plain(text) },
        PromptPart::Media { kind, name, mime, blob: _, content, detail } => {
            (*kind, name, mime, content, detail.map(ImageDetail::name))
        }
    };
    if inputs::is_text(mime) {
        return Content::InputText { text: RequestText::TextFile { name, content } };
    }
    let data = RequestText::DataUrl { mime, content };
    match kind {
        MediaKind::Image => Content::InputImage { image_url: data, detail },
        MediaKind::File | MediaKind::Audio => {
            Content::InputFile { filename: name, file_data: data }
        }
    }
}
