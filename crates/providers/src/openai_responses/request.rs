//! Writes a prompt as a request of the API.

use std::sync::Arc;

use quintet_kernel::model::{Effort, OutputFormat, ToolChoice};
use quintet_kernel::tool::ToolSpec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::items::{self, Item};
use crate::facts::Thinking;
use crate::family::ModelRequest;

/// The body of a request.
pub(super) fn body(model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
    let (prompt, sampling) = (model_request.prompt, &model_request.prompt.sampling);
    // A model without thinking rejects a request for thoughts.
    let thinks = match model_request.facts.thinking {
        Thinking::Never => false,
        Thinking::Unknown => sampling.effort.is_some(),
        Thinking::Effort | Thinking::Budget | Thinking::Adaptive => true,
    };
    let effort = model_request.facts.effort(sampling.effort).map(|effort| match effort {
        // Models with this effort cannot search.
        Effort::Minimal if model_request.search => Effort::Low,
        effort => effort,
    });
    let effort = effort.map(Effort::name);
    serde_json::to_vec(&Request {
        model: &prompt.model.model,
        instructions: Some(prompt.system.as_str()).filter(|text| !text.is_empty()),
        input: items::items(model_request),
        tools: model_request.tools,
        tool_choice: choice(model_request),
        stream: true,
        store: false,
        include: thinks.then_some(["reasoning.encrypted_content"]),
        reasoning: thinks.then_some(Reasoning { effort, summary: "auto" }),
        max_output_tokens: sampling.max_tokens,
        temperature: sampling.temperature.filter(|_| !thinks),
        top_p: sampling.top_p().filter(|_| !thinks),
        text: sampling.format().map(|form| Text { format: format(form) }),
    })
}

/// The tool definitions, the provider's own search first.
pub(super) fn tools(tools: &[Arc<ToolSpec>], search: bool) -> serde_json::Result<Box<RawValue>> {
    let tool = |spec: &'_ Arc<ToolSpec>| {
        to_raw_value(&Tool {
            kind: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
            strict: spec.strict,
        })
    };
    let own = search.then(|| to_raw_value(&Hosted { kind: "web_search" }));
    let all = own.into_iter().chain(tools.iter().map(tool));
    to_raw_value(&all.collect::<Result<Vec<_>, _>>()?)
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Text>,
}

#[derive(Serialize)]
struct Text {
    format: Value,
}

/// The tools that must be called; `None` if the model decides.
fn choice(model_request: &ModelRequest<'_>) -> Option<Value> {
    match model_request.prompt.sampling.tool_choice() {
        _ if model_request.keeps_from_calling() => Some("none".into()),
        _ if model_request.tools.is_none() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "name": name })),
    }
}

/// The requested output format.
fn format(format: &OutputFormat) -> Value {
    match format {
        OutputFormat::Json => json!({ "type": "json_object" }),
        OutputFormat::Schema { name, schema, strict } => {
            json!({ "type": "json_schema", "name": name, "schema": schema, "strict": strict })
        }
    }
}

#[derive(Serialize)]
struct Reasoning {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    summary: &'static str,
}

/// A tool that the provider runs.
#[derive(Serialize)]
struct Hosted {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}
