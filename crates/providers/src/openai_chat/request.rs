//! Writes a prompt as the API wants to read it. Everything borrows from the prompt.

use std::borrow::Cow;

use quintet_kernel::model::{
    Failure, FailureKind, Profile, Prompt, PromptCall, PromptMessage, PromptPart, calls_said,
    text_said,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::media::{self, Part};
use super::offer::Offer;

/// The body of a request.
pub(super) fn body(prompt: &Prompt, profile: &Profile, offer: &Offer) -> Result<Vec<u8>, Failure> {
    // A model that cannot call tools may refuse a request that offers some.
    let tools = if profile.tools { prompt.tools.as_slice() } else { &[] };
    let tools = offer.written(tools).map_err(unwritable)?;
    serde_json::to_vec(&Request::new(prompt, tools.as_deref())?).map_err(unwritable)
}

#[expect(clippy::needless_pass_by_value, reason = "made for map_err")]
fn unwritable(error: serde_json::Error) -> Failure {
    Failure { kind: FailureKind::Rejected, message: error.to_string() }
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

impl<'a> Request<'a> {
    fn new(prompt: &'a Prompt, tools: Option<&'a RawValue>) -> Result<Self, Failure> {
        let system = Message::System { content: &prompt.system };
        let system = (!prompt.system.is_empty()).then_some(Ok(system));
        let said = prompt.messages.iter().map(Message::new);
        Ok(Self {
            model: &prompt.model.model,
            messages: system.into_iter().chain(said).collect::<Result<_, _>>()?,
            tools,
            stream: true,
            stream_options: StreamOptions { include_usage: true },
            max_tokens: prompt.sampling.max_tokens,
            temperature: prompt.sampling.temperature,
        })
    }
}

impl<'a> Message<'a> {
    fn new(message: &'a PromptMessage) -> Result<Self, Failure> {
        Ok(match message {
            PromptMessage::User(parts) => Self::User { content: Content::new(parts)? },
            PromptMessage::Assistant { by: _, parts } => {
                let tool_calls: Vec<_> = calls_said(parts).map(Call::new).collect();
                let text = text_said(parts);
                // Nothing said is null beside calls, and an empty text where there are none.
                let content = (!text.is_empty() || tool_calls.is_empty()).then_some(text);
                Self::Assistant { content, tool_calls }
            }
            PromptMessage::Result { call, text, .. } => {
                Self::Tool { tool_call_id: call.as_str(), content: text }
            }
        })
    }
}

impl<'a> Content<'a> {
    fn new(parts: &'a [PromptPart]) -> Result<Self, Failure> {
        if let Some(text) = only_text(parts) {
            return Ok(Self::Text(text));
        }
        let parts = parts.iter().map(media::part);
        Ok(Self::Parts(parts.collect::<Result<_, _>>()?))
    }
}

fn only_text(parts: &[PromptPart]) -> Option<Cow<'_, str>> {
    if let [PromptPart::Text(text)] = parts {
        return Some(text.into());
    }
    parts.iter().map(text_of).collect::<Option<String>>().map(Cow::Owned)
}

fn text_of(part: &PromptPart) -> Option<&str> {
    match part {
        PromptPart::Text(text) => Some(text),
        PromptPart::Media { .. } => None,
    }
}

impl<'a> Call<'a> {
    fn new(call: &'a PromptCall) -> Self {
        let arguments = call.input.to_string();
        let function = CalledFunction { name: &call.tool, arguments };
        Self { id: call.call.as_str(), kind: "function", function }
    }
}

#[cfg(test)]
mod tests;
