//! Writes a prompt as the API wants to read it.

use std::sync::Arc;

use quintet_kernel::model::{Effort, OutputFormat, ToolChoice};
use quintet_kernel::tool::Spec;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::items::{self, Item};
use crate::facts::Thinking;
use crate::family::Ask;

/// The body of a request.
pub(super) fn body(ask: &Ask<'_>) -> serde_json::Result<Vec<u8>> {
    let (prompt, sampling) = (ask.prompt, &ask.prompt.sampling);
    // A model that does not think refuses to be asked for its thoughts.
    let thinks = match ask.facts.thinking {
        Thinking::Never => false,
        Thinking::Unknown => sampling.effort.is_some(),
        Thinking::Effort | Thinking::Budget | Thinking::Adaptive => true,
    };
    let effort = ask.facts.effort(sampling.effort).map(|effort| match effort {
        // A model that thinks as little as that is not let search.
        Effort::Minimal if ask.search => Effort::Low,
        effort => effort,
    });
    let effort = effort.map(Effort::name);
    serde_json::to_vec(&Request {
        model: &prompt.model.model,
        instructions: Some(prompt.system.as_str()).filter(|text| !text.is_empty()),
        input: items::items(ask),
        tools: ask.tools,
        tool_choice: choice(ask),
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

/// The tools as they are offered, the provider's own search first.
pub(super) fn tools(tools: &[Arc<Spec>], search: bool) -> serde_json::Result<Box<RawValue>> {
    let tool = |spec: &'_ Arc<Spec>| {
        to_raw_value(&Tool {
            kind: "function",
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.schema,
            strict: false,
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

/// Which tools must be called; nothing if the model decides.
fn choice(ask: &Ask<'_>) -> Option<Value> {
    match ask.prompt.sampling.tool_choice() {
        _ if ask.keeps_from_calling() => Some("none".into()),
        _ if ask.tools.is_none() => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "name": name })),
    }
}

/// The form of the answer.
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
