//! Writes a prompt as a request of the API.

use std::sync::Arc;

use quintet_kernel::model::{AssistantPart, Effort, PromptMessage, ToolChoice};
use quintet_kernel::tool::ToolSpec;
use quintet_kernel::web_search::WEB_SEARCH;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::blocks::{self, CACHE_MARK, CacheControl, Message};
use crate::facts::{Thinking, budget, in_tool_loop};
use crate::family::ModelRequest;

/// Limit on the answer for models whose own limit is not known; the API requires one.
const DEFAULT_TOKENS_LIMIT: u64 = 8_192;
/// Tokens reserved for the answer, in addition to its thoughts.
const ANSWER_TOKENS_RESERVE: u64 = 8_192;
/// The smallest thinking budget that the API accepts.
const THINKING_TOKENS_MINIMUM: u64 = 1_024;

/// The body of a request.
pub(super) fn body(model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
    let (prompt, sampling) = (model_request.prompt, &model_request.prompt.sampling);
    let effort = model_request.facts.effort(sampling.effort).filter(|_| may_think(model_request));
    let limit = limit(model_request, effort);
    let think = effort.and_then(|effort| think(model_request.facts.thinking, effort, limit));
    let thinks = think.as_ref().is_some_and(|think| think.kind != "disabled");
    let system = (!prompt.system.is_empty())
        .then(|| [System { kind: "text", text: &prompt.system, cache_control: CACHE_MARK }]);
    let adaptive = model_request.facts.thinking == Thinking::Adaptive && thinks;
    let word =
        effort.filter(|_| adaptive).map(|effort| OutputConfig { effort: effort_name(effort) });
    serde_json::to_vec(&Request {
        model: &prompt.model.model,
        max_tokens: limit,
        stream: true,
        system,
        tools: model_request.tools,
        tool_choice: choice(model_request, thinks),
        messages: blocks::messages(model_request, thinks),
        // Not accepted for a model that thinks.
        temperature: sampling.temperature.filter(|_| !thinks),
        top_p: sampling.top_p().filter(|_| !thinks),
        stop_sequences: sampling.stop(),
        thinking: think,
        output_config: word,
    })
}

/// The tool definitions, the provider's own search first; the last one has the cache mark.
pub(super) fn tools(tools: &[Arc<ToolSpec>], search: bool) -> serde_json::Result<Box<RawValue>> {
    let last = tools.len().saturating_sub(1);
    let tool = |(n, spec): (usize, &'_ Arc<ToolSpec>)| {
        to_raw_value(&Tool {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.schema,
            cache_control: (n == last).then_some(CACHE_MARK),
        })
    };
    let own = search.then(|| to_raw_value(&SEARCH));
    let all = own.into_iter().chain(tools.iter().enumerate().map(tool));
    to_raw_value(&all.collect::<Result<Vec<_>, _>>()?)
}

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[System<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct Choice<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// The tools that must be called; `None` if the model decides. A model that thinks cannot be forced.
fn choice<'a>(model_request: &ModelRequest<'a>, thinks: bool) -> Option<Choice<'a>> {
    match model_request.prompt.sampling.tool_choice() {
        _ if model_request.keeps_from_calling() => Some(Choice { kind: "none", name: None }),
        _ if model_request.tools.is_none() || thinks => None,
        ToolChoice::Auto => None,
        ToolChoice::Required => Some(Choice { kind: "any", name: None }),
        ToolChoice::Named(name) => Some(Choice { kind: "tool", name: Some(name) }),
    }
}

#[derive(Serialize)]
struct System<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// The provider's own search.
#[derive(Serialize)]
struct ServerTool {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    /// Maximum number of searches of one answer.
    max_uses: u32,
}

const SEARCH: ServerTool =
    ServerTool { kind: "web_search_20250305", name: WEB_SEARCH, max_uses: 8 };

#[derive(Serialize)]
struct Think {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u64>,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

fn limit(model_request: &ModelRequest<'_>, effort: Option<Effort>) -> u64 {
    let most = model_request.facts.max_output.unwrap_or(u64::MAX);
    let usual = model_request.facts.max_output.unwrap_or(DEFAULT_TOKENS_LIMIT);
    let asked = model_request.prompt.sampling.max_tokens.unwrap_or(usual);
    // Thoughts count towards the limit, so a limit smaller than the budget would leave no room for
    // the answer.
    let needed = match (effort, model_request.facts.thinking) {
        (Some(Effort::None) | None, _) | (_, Thinking::Adaptive | Thinking::Never) => asked,
        (Some(effort), Thinking::Unknown | Thinking::Effort | Thinking::Budget) => {
            asked.max(budget(effort) + ANSWER_TOKENS_RESERVE)
        }
    };
    needed.clamp(1, most.max(1))
}

fn think(style: Thinking, effort: Effort, limit: u64) -> Option<Think> {
    match (effort, style) {
        (_, Thinking::Never) => None,
        (Effort::None, _) => Some(Think { kind: "disabled", budget_tokens: None }),
        (_, Thinking::Adaptive) => Some(Think { kind: "adaptive", budget_tokens: None }),
        (effort, Thinking::Unknown | Thinking::Effort | Thinking::Budget) => {
            let most = limit.saturating_sub(THINKING_TOKENS_MINIMUM);
            let tokens = budget(effort).min(most);
            (tokens >= THINKING_TOKENS_MINIMUM)
                .then_some(Think { kind: "enabled", budget_tokens: Some(tokens) })
        }
    }
}

fn effort_name(effort: Effort) -> &'static str {
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh => "max",
    }
}

/// During a tool loop a model may think only if its last answer began with its own thought, not if
/// another model wrote that answer or it was written without thinking.
fn may_think(model_request: &ModelRequest<'_>) -> bool {
    if !in_tool_loop(&model_request.prompt.messages)
        || model_request.facts.thinking == Thinking::Adaptive
    {
        return true;
    }
    let last = model_request.prompt.messages.iter().rev().find_map(|message| match &**message {
        PromptMessage::Assistant { by, parts } => Some((by, parts)),
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Result { .. } => None,
    });
    let sealed =
        |part: &AssistantPart| matches!(part, AssistantPart::Sealed(it) if blocks::is_thought(it));
    last.is_some_and(|(by, parts)| {
        by.as_ref() == Some(&model_request.prompt.model) && parts.iter().any(sealed)
    })
}
