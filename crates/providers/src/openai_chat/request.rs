//! Writes a prompt as the API wants to read it. Everything borrows from the prompt.

use std::borrow::Cow;

use quintet_kernel::model::{
    Failure, FailureKind, Profile, Prompt, PromptCall, PromptMessage, PromptPart,
};
use quintet_kernel::tool;
use serde::Serialize;
use serde_json::Value;

use super::media::{self, Part};

/// The body of a request.
pub(super) fn body(prompt: &Prompt, profile: &Profile) -> Result<Vec<u8>, Failure> {
    let request = Request::new(prompt, profile)?;
    serde_json::to_vec(&request)
        .map_err(|error| Failure { kind: FailureKind::Rejected, message: error.to_string() })
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
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
        content: Option<&'a str>,
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

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Request<'a> {
    fn new(prompt: &'a Prompt, profile: &Profile) -> Result<Self, Failure> {
        let system = Message::System { content: &prompt.system };
        let system = (!prompt.system.is_empty()).then_some(Ok(system));
        let said = prompt.messages.iter().map(Message::new);
        // A model that cannot call tools may refuse a request that offers some.
        let tools = if profile.tools { prompt.tools.as_slice() } else { &[] };
        Ok(Self {
            model: &prompt.model.model,
            messages: system.into_iter().chain(said).collect::<Result<_, _>>()?,
            tools: tools.iter().map(|spec| Tool::new(spec)).collect(),
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
            PromptMessage::Assistant { text, calls } => Self::Assistant {
                // Nothing said is null beside calls, and an empty text where there are none.
                content: (!text.is_empty() || calls.is_empty()).then_some(text),
                tool_calls: calls.iter().map(Call::new).collect(),
            },
            PromptMessage::Result { call, text, tool: _, ok: _ } => {
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

impl<'a> Tool<'a> {
    fn new(spec: &'a tool::Spec) -> Self {
        let function =
            Function { name: &spec.name, description: &spec.description, parameters: &spec.schema };
        Self { kind: "function", function }
    }
}

#[cfg(test)]
mod tests;
