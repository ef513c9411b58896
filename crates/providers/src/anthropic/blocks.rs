//! The messages of a request, and the marks up to which the provider caches it.

use std::borrow::Cow;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{AssistantPart, PromptMessage, PromptPart};
use serde::Serialize;
use serde_json::{Value, json};

use crate::facts::visible;
use crate::inputs;
use crate::media::RequestText;
use crate::{family::ModelRequest, ids};

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    pub(super) content: Vec<Marked<'a>>,
}

/// A block, and whether the provider caches everything up to it.
#[derive(Serialize)]
pub(super) struct Marked<'a> {
    #[serde(flatten)]
    block: Block<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The only kind of cache mark.
pub(super) const CACHE_MARK: CacheControl = CacheControl { kind: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: RequestText<'a>,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        is_error: bool,
    },
    /// A block that is sent back as it was received.
    #[serde(untagged)]
    Verbatim(&'a Value),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: String,
    data: RequestText<'a>,
}

/// The conversation. Roles alternate: tool results and the user's next message are one message.
pub(super) fn messages<'a>(model_request: &ModelRequest<'a>, thinks: bool) -> Vec<Message<'a>> {
    let mut out: Vec<Message<'a>> = Vec::new();
    for message in &model_request.prompt.messages {
        let (role, blocks) = match &**message {
            // Instructions are possible only at the beginning.
            PromptMessage::System(text) if is_blank(text) => ("user", Vec::new()),
            PromptMessage::System(text) => {
                ("user", vec![Block::Text { text: RequestText::Plain(text) }])
            }
            PromptMessage::User(parts) => ("user", parts.iter().filter_map(shown).collect()),
            PromptMessage::Assistant { by, parts } => {
                let own = visible(&model_request.prompt.model, by.as_ref(), parts);
                ("assistant", model_blocks(own, thinks, model_request.search))
            }
            PromptMessage::Result { call, tool: _, text, media, ok } => {
                let text =
                    (!is_blank(text)).then(|| Block::Text { text: RequestText::Plain(text) });
                let content = text.into_iter().chain(media.iter().filter_map(shown)).collect();
                let tool_use_id = ids::bounded(call);
                ("user", vec![Block::ToolResult { tool_use_id, content, is_error: !ok }])
            }
        };
        push(&mut out, role, blocks);
    }
    mark(&mut out);
    out
}

fn push<'a>(out: &mut Vec<Message<'a>>, role: &'static str, blocks: Vec<Block<'a>>) {
    if blocks.is_empty() {
        return;
    }
    // A conversation must begin with a user message.
    if out.is_empty() && role == "assistant" {
        let text = RequestText::Plain("(the conversation begins with your words)");
        push(out, "user", vec![Block::Text { text }]);
    }
    let blocks = blocks.into_iter().map(|block| Marked { block, cache_control: None });
    match out.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        _ => out.push(Message { role, content: blocks.collect() }),
    }
}

/// Marks the end of the last two user messages: the newest for the next request, the one before for
/// this one. Together with the tools and the system prompt these are the four allowed marks.
fn mark(messages: &mut [Message<'_>]) {
    let users = messages.iter_mut().rev().filter(|message| message.role == "user");
    for message in users.take(2) {
        if let Some(last) = message.content.last_mut() {
            last.cache_control = Some(CACHE_MARK);
        }
    }
}

/// The blocks of a model's message. A thought is sent back only with its signature, a search only
/// if the provider searches.
fn model_blocks<'a>(
    parts: impl Iterator<Item = &'a AssistantPart>,
    thinks: bool,
    searches: bool,
) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let mut thought = "";
    for part in parts {
        match part {
            AssistantPart::Text(text) if is_blank(text) => {}
            AssistantPart::Text(text) => {
                blocks.push(Block::Text { text: RequestText::Plain(text) })
            }
            AssistantPart::Thought(text) => thought = text,
            AssistantPart::Sealed(content) => {
                let thinking = std::mem::take(&mut thought);
                let wanted = if is_thought(content) { thinks } else { searches };
                blocks.extend(wanted.then(|| sealed(content, thinking)).flatten());
            }
            AssistantPart::Call(call) => blocks.push(Block::ToolUse {
                id: ids::bounded(&call.call),
                name: &call.tool,
                input: object(&call.input),
            }),
        }
    }
    blocks
}

/// True if a sealed block is a thought, false if it is a search.
pub(super) fn is_thought(content: &Value) -> bool {
    content.get("block").is_none()
}

fn sealed<'a>(content: &'a Value, thinking: &'a str) -> Option<Block<'a>> {
    if let Some(block) = content.get("block").filter(|block| block.is_object()) {
        return Some(Block::Verbatim(block));
    }
    if let Some(signature) = content["signature"].as_str() {
        return Some(Block::Thinking { thinking, signature });
    }
    content["data"].as_str().map(|data| Block::RedactedThinking { data })
}

/// The arguments of a call, which must be an object for the API even if the model wrote none.
fn object(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        other => Cow::Owned(json!({ "arguments": other })),
    }
}

/// A part of a user message that [`inputs::fit`] has checked. The API refuses blank text.
fn shown(part: &PromptPart) -> Option<Block<'_>> {
    let (kind, name, mime, content) = match part {
        PromptPart::Text(text) if is_blank(text) => return None,
        PromptPart::Text(text) => return Some(Block::Text { text: RequestText::Plain(text) }),
        PromptPart::Media { kind, name, mime, blob: _, content, detail: _ } => {
            (*kind, name, mime, content)
        }
    };
    if inputs::is_text(mime) {
        return Some(Block::Text { text: RequestText::TextFile { name, content } });
    }
    let media_type = inputs::essence(mime).replace("image/jpg", "image/jpeg");
    let source = Source { kind: "base64", media_type, data: RequestText::Base64(content) };
    match kind {
        MediaKind::Image => Some(Block::Image { source }),
        MediaKind::File => Some(Block::Document { source }),
        MediaKind::Audio => None,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
