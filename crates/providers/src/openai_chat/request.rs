//! Writes a prompt as a request of the API. Everything large borrows from the prompt.

use std::borrow::Cow;
use std::sync::Arc;

use quintet_kernel::model::{
    AssistantPart, OutputFormat, PromptCall, PromptMessage, PromptPart, ToolChoice,
    assistant_calls, assistant_text,
};
use quintet_kernel::tool::ToolSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::parts::{self, Part};
use crate::facts::visible;
use crate::family::ModelRequest;
use crate::ids;
use crate::media::RequestText;
use crate::quirks::{EffortStyle, Quirks};

/// The body of a request.
pub(super) fn body(model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
    let effort = model_request
        .facts
        .effort(model_request.prompt.sampling.effort)
        .map(|effort| effort.name());
    let style = |wanted| effort.filter(|_| model_request.quirks.effort == wanted);
    let (limit, long) =
        (model_request.prompt.sampling.max_tokens, model_request.quirks.max_completion_tokens);
    serde_json::to_vec(&Request {
        model: &model_request.prompt.model.model,
        messages: messages(model_request),
        tools: model_request.tools,
        tool_choice: choice(model_request),
        stream: true,
        stream_options: model_request
            .quirks
            .stream_options
            .then_some(StreamOptions { include_usage: true }),
        max_tokens: limit.filter(|_| !long),
        max_completion_tokens: limit.filter(|_| long),
        temperature: model_request.prompt.sampling.temperature,
        top_p: model_request.prompt.sampling.top_p(),
        stop: model_request.prompt.sampling.stop(),
        response_format: model_request.prompt.sampling.format().map(format),
        reasoning_effort: style(EffortStyle::Word),
        reasoning: style(EffortStyle::Object).map(|effort| Reasoning { effort }),
        thinking: style(EffortStyle::Switch).map(Switch::new),
    })
}

/// The tools that must be called; `None` if the model decides.
fn choice(model_request: &ModelRequest<'_>) -> Option<Value> {
    match model_request.prompt.sampling.tool_choice() {
        _ if model_request.keeps_from_calling() => Some("none".into()),
        _ if model_request.tools.is_none() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => {
            Some(json!({ "type": "function", "function": { "name": name } }))
        }
    }
}

/// The requested output format.
fn format(format: &OutputFormat) -> Value {
    match format {
        OutputFormat::Json => json!({ "type": "json_object" }),
        OutputFormat::Schema { name, schema, strict } => json!({
            "type": "json_schema",
            "json_schema": { "name": name, "schema": schema, "strict": strict },
        }),
    }
}

/// The tool definitions.
pub(super) fn tools(tools: &[Arc<ToolSpec>]) -> serde_json::Result<Box<RawValue>> {
    to_raw_value(&tools.iter().map(|spec| Tool::new(spec)).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
struct Switch {
    #[serde(rename = "type")]
    state: &'static str,
}

impl Switch {
    fn new(effort: &str) -> Self {
        Self { state: if effort == "none" { "disabled" } else { "enabled" } }
    }
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
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(spec: &'a ToolSpec) -> Self {
        let function = Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
            strict: spec.strict,
        };
        Self { kind: "function", function }
    }
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
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning_content: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
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
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

fn messages<'a>(model_request: &ModelRequest<'a>) -> Vec<Message<'a>> {
    let prompt = model_request.prompt;
    let mut out = Vec::with_capacity(prompt.messages.len() + 1);
    if !prompt.system.is_empty() {
        out.push(Message::System { content: &prompt.system });
    }
    // Results cannot contain pictures; these follow after all results of an answer.
    let mut pictures = Vec::new();
    for message in &prompt.messages {
        match &**message {
            PromptMessage::System(text) => {
                show(&mut pictures, &mut out);
                out.push(Message::System { content: text });
            }
            PromptMessage::User(said) => {
                show(&mut pictures, &mut out);
                out.push(Message::User { content: content(said) });
            }
            PromptMessage::Assistant { by, parts } => {
                show(&mut pictures, &mut out);
                let own = visible(&prompt.model, by.as_ref(), parts);
                out.push(assistant(parts, own, model_request.quirks));
            }
            PromptMessage::Result { call, tool, text, media, ok: _ } => {
                out.push(Message::Tool {
                    tool_call_id: id(call, model_request.quirks),
                    content: text,
                });
                pictures.extend(media.iter().map(|media| (tool.as_str(), media)));
            }
        }
    }
    show(&mut pictures, &mut out);
    out
}

fn show<'a>(pictures: &mut Vec<(&'a str, &'a PromptPart)>, out: &mut Vec<Message<'a>>) {
    if pictures.is_empty() {
        return;
    }
    let parts = pictures.drain(..).flat_map(|(tool, media)| {
        let text = RequestText::Owned(format!("This is what {tool} shows:"));
        [Part::Text { text }, parts::part(media)]
    });
    out.push(Message::User { content: Content::Parts(parts.collect()) });
}

fn assistant<'a>(
    parts: &'a [AssistantPart],
    mut own: impl Iterator<Item = &'a AssistantPart> + Clone,
    quirks: &Quirks,
) -> Message<'a> {
    let tool_calls: Vec<_> = assistant_calls(parts).map(|call| Call::new(call, quirks)).collect();
    let text = match parts {
        [AssistantPart::Text(text)] => Cow::Borrowed(text.as_str()),
        parts => Cow::Owned(assistant_text(parts)),
    };
    let thoughts = own.clone().filter_map(|part| match part {
        AssistantPart::Thought(text) if quirks.thoughts_back => Some(text.as_str()),
        AssistantPart::Thought(_)
        | AssistantPart::Text(_)
        | AssistantPart::Sealed(_)
        | AssistantPart::Call(_) => None,
    });
    let details = own.find_map(|part| match part {
        AssistantPart::Sealed(details @ Value::Array(_)) => Some(details),
        AssistantPart::Sealed(_)
        | AssistantPart::Text(_)
        | AssistantPart::Thought(_)
        | AssistantPart::Call(_) => None,
    });
    Message::Assistant {
        // An empty text is null if there are calls, and an empty string otherwise.
        content: (!text.is_empty() || tool_calls.is_empty()).then_some(text),
        reasoning_content: thoughts.collect(),
        reasoning_details: details,
        tool_calls,
    }
}

fn content(parts: &[PromptPart]) -> Content<'_> {
    match only_text(parts) {
        Some(text) => Content::Text(text),
        None => Content::Parts(parts.iter().map(parts::part).collect()),
    }
}

fn only_text(parts: &[PromptPart]) -> Option<Cow<'_, str>> {
    if let [PromptPart::Text(text)] = parts {
        return Some(text.into());
    }
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { .. } => None,
    };
    parts.iter().map(text).collect::<Option<String>>().map(Cow::Owned)
}

fn id<'a>(call: &'a quintet_kernel::CallId, quirks: &Quirks) -> Cow<'a, str> {
    if quirks.short_ids { ids::nine_characters(call) } else { ids::bounded(call) }
}

impl<'a> Call<'a> {
    fn new(call: &'a PromptCall, quirks: &Quirks) -> Self {
        let function = CalledFunction { name: &call.tool, arguments: call.arguments() };
        Self { id: id(&call.call, quirks), kind: "function", function }
    }
}

#[cfg(test)]
mod tests;
