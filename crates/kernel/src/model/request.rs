//! Requests to models.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelRef;
use crate::id::{BlobId, CallId};
use crate::message::MediaKind;
use crate::tool;

/// Everything a model call needs.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// The model.
    pub model: ModelRef,
    /// The system prompt.
    pub system: String,
    /// The conversation, oldest first. Prompts of a session share unchanged messages.
    pub messages: Vec<Arc<PromptMessage>>,
    /// The offered tools.
    pub tools: Vec<Arc<tool::ToolSpec>>,
    /// Whether the model may call tools now. Tools are listed even if not: the conversation
    /// may contain calls of them, and providers cache a prompt from its tools on.
    pub may_call: bool,
    /// Whether the provider may search the web.
    pub search: WebSearch,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// The account that pays; the daemon's own if `None`.
    pub account: Option<Account>,
}

/// A user who pays for model calls with their own API keys. Only a name: the keys are looked up
/// for each call and are stored nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// The front end that the name belongs to.
    pub space: String,
    /// The name there.
    pub name: String,
}

/// Whether the provider searches the web during a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebSearch {
    /// No search by the provider; a tool may exist.
    #[default]
    Off,
    /// Search by the provider, if it supports it.
    Native,
}

/// Sampling parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Maximum number of output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The reasoning effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Parameters that few requests have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Box<Constraints>>,
}

impl Sampling {
    /// Nucleus sampling: the probability mass to choose from.
    pub fn top_p(&self) -> Option<f64> {
        self.constraints.as_ref()?.top_p
    }

    /// Texts at which the output ends.
    pub fn stop(&self) -> &[String] {
        self.constraints.as_ref().map_or(&[], |constraints| &constraints.stop)
    }

    /// Which of the tools the model must call.
    pub fn tool_choice(&self) -> &ToolChoice {
        self.constraints.as_ref().map_or(&ToolChoice::Auto, |constraints| &constraints.tool_choice)
    }

    /// The output format; free text if `None`.
    pub fn format(&self) -> Option<&OutputFormat> {
        self.constraints.as_ref()?.format.as_ref()
    }
}

/// Parameters that few requests have, boxed so that the others stay small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constraints {
    /// The share of the likeliest tokens that is chosen from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the output ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The tools that the model must call, if it may call any.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// The output format; free text if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
}

impl Constraints {
    /// `None` if all fields have their defaults.
    pub fn unless_empty(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Which tools a model must call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one tool, of the model's choice.
    Required,
    /// The tool of this name.
    Named(String),
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The required format of the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Any JSON object.
    Json,
    /// JSON that fits a schema.
    Schema {
        /// The name of the schema.
        name: String,
        /// The JSON Schema.
        schema: Value,
        /// True if the provider is to enforce the schema.
        strict: bool,
    },
}

/// The reasoning effort. Each API has its own names or numbers for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No reasoning, if the model supports that.
    None,
    /// The least effort that the model supports.
    Minimal,
    /// Low effort.
    Low,
    /// Medium effort.
    Medium,
    /// High effort.
    High,
    /// The highest effort.
    XHigh,
}

impl Effort {
    /// All efforts, the lowest first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh];

    /// The effort of that name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == word)
    }

    /// The name used in configuration and protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
        }
    }
}

/// A message as a model reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptMessage {
    /// Instructions in the middle of the conversation.
    System(String),
    /// A user message.
    User(Vec<PromptPart>),
    /// An earlier model message.
    Assistant {
        /// The model, if known. Reasoning is sent back only to its author.
        by: Option<ModelRef>,
        /// Text, reasoning and calls, in order.
        parts: Vec<AssistantPart>,
    },
    /// The result of a call in the model message before.
    Result {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The text that the model reads.
        text: String,
        /// Media that the model reads.
        media: Vec<PromptPart>,
        /// True if the call succeeded.
        ok: bool,
    },
}

/// A part of a model message.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart {
    /// Text of the response.
    Text(String),
    /// Reasoning.
    Thought(String),
    /// Provider data that only its author can read; see [`Sealed`](super::Sealed).
    Sealed(Value),
    /// A tool call, right after its sealed data.
    Call(PromptCall),
}

/// The text of a model message, without reasoning.
pub fn assistant_text(parts: &[AssistantPart]) -> String {
    let text = parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.as_str()),
        AssistantPart::Thought(_) | AssistantPart::Sealed(_) | AssistantPart::Call(_) => None,
    });
    text.collect()
}

/// The calls of a model message.
pub fn assistant_calls(parts: &[AssistantPart]) -> impl Iterator<Item = &PromptCall> {
    parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        AssistantPart::Text(_) | AssistantPart::Thought(_) | AssistantPart::Sealed(_) => None,
    })
}

/// A part of a message that is not the model's.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// A file; its content is loaded before the call.
    Media {
        /// The kind of media.
        kind: MediaKind,
        /// The file name.
        name: String,
        /// The MIME type.
        mime: String,
        /// The stored content.
        blob: BlobId,
        /// The content, once loaded.
        content: Arc<[u8]>,
        /// For a picture: the requested level of detail, if any.
        detail: Option<ImageDetail>,
    },
}

/// The level of detail at which a model reads a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageDetail {
    /// The provider decides.
    Auto,
    /// A small version of the picture.
    Low,
    /// The whole picture.
    High,
    /// The whole picture at its original size.
    Original,
}

impl ImageDetail {
    const ALL: [Self; 4] = [Self::Auto, Self::Low, Self::High, Self::Original];

    /// The name used in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Low => "low",
            Self::High => "high",
            Self::Original => "original",
        }
    }

    /// The level of detail of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|detail| detail.name() == name)
    }
}

/// A tool call of an earlier model message.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptCall {
    /// The call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// The arguments as the model wrote them, if they must be kept byte for byte.
    pub written: Option<String>,
}

impl PromptCall {
    /// A call whose arguments need not be kept byte for byte.
    pub fn new(call: CallId, tool: impl Into<String>, input: Value) -> Self {
        Self { call, tool: tool.into(), input, written: None }
    }

    /// The arguments as text.
    pub fn arguments(&self) -> String {
        self.written.clone().unwrap_or_else(|| self.input.to_string())
    }
}
