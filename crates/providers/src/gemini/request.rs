//! Writes a prompt as a request of the API.

use std::sync::Arc;

use quintet_kernel::model::{Effort, OutputFormat, ToolChoice};
use quintet_kernel::tool::ToolSpec;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::contents::{self, Content};
use super::schema;
use crate::facts::{Thinking, budget};
use crate::family::ModelRequest;

/// The body of a request.
pub(super) fn body(model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
    let (prompt, sampling) = (model_request.prompt, &model_request.prompt.sampling);
    let system = Some(prompt.system.as_str()).filter(|text| !text.is_empty());
    let config = Config {
        max_output_tokens: sampling.max_tokens,
        temperature: sampling.temperature,
        top_p: sampling.top_p(),
        stop_sequences: sampling.stop(),
        response_mime_type: sampling.format().map(|_| "application/json"),
        response_json_schema: sampling.format().and_then(|format| match format {
            OutputFormat::Json => None,
            OutputFormat::Schema { schema, .. } => Some(schema),
        }),
        thinking_config: thinking(model_request),
    };
    serde_json::to_vec(&Request {
        system_instruction: system.map(|text| System { parts: [Text { text }] }),
        contents: contents::contents(model_request),
        // No other setting prevents a search.
        tools: model_request.tools.filter(|_| prompt.may_call || !model_request.search),
        tool_config: tool_config(model_request),
        generation_config: config,
    })
}

/// The tool definitions; if the provider searches, search is the only one.
pub(super) fn tools(tools: &[Arc<ToolSpec>], search: bool) -> serde_json::Result<Box<RawValue>> {
    if search {
        return to_raw_value(&[Search { google_search: Empty {} }]);
    }
    let declare = |spec: &Arc<ToolSpec>| Declaration {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: schema::subset(&spec.schema),
    };
    let function_declarations = tools.iter().map(declare).collect();
    to_raw_value(&[Tools { function_declarations }])
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<System<'a>>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    generation_config: Config<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig<'a> {
    function_calling_config: Calling<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Calling<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_function_names: Option<[&'a str; 1]>,
}

/// The tools that must or must not be called; `None` if the model decides.
fn tool_config<'a>(model_request: &ModelRequest<'a>) -> Option<ToolConfig<'a>> {
    let (mode, allowed_function_names) = match model_request.prompt.sampling.tool_choice() {
        _ if model_request.search || model_request.tools.is_none() => return None,
        _ if model_request.keeps_from_calling() => ("NONE", None),
        ToolChoice::Auto => return None,
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Named(name) => ("ANY", Some([name.as_str()])),
    };
    Some(ToolConfig { function_calling_config: Calling { mode, allowed_function_names } })
}

#[derive(Serialize)]
struct System<'a> {
    parts: [Text<'a>; 1],
}

#[derive(Serialize)]
struct Text<'a> {
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    function_declarations: Vec<Declaration>,
}

#[derive(Serialize)]
struct Search {
    google_search: Empty,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
struct Declaration {
    name: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

/// Older models accept a number of tokens, newer ones a level.
fn thinking(model_request: &ModelRequest<'_>) -> Option<ThinkingConfig> {
    let effort = model_request.facts.effort(model_request.prompt.sampling.effort);
    let config = |thinking_budget, thinking_level| {
        let include_thoughts = effort != Some(Effort::None);
        Some(ThinkingConfig { include_thoughts, thinking_budget, thinking_level })
    };
    match (model_request.facts.thinking, effort) {
        (Thinking::Never, _) | (Thinking::Unknown, None) => None,
        (Thinking::Effort | Thinking::Adaptive, effort) => config(None, effort.map(level)),
        (Thinking::Unknown | Thinking::Budget, effort) => config(effort.map(budget), None),
    }
}

fn level(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High | Effort::XHigh => "high",
    }
}
