//! What the core says to a model.

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
    /// Which model.
    pub model: ModelRef,
    /// Standing instructions.
    pub system: String,
    /// The conversation, oldest first. The prompts of a session share what they have in common.
    pub messages: Vec<Arc<PromptMessage>>,
    /// The tools there are.
    pub tools: Vec<Arc<tool::ToolSpec>>,
    /// Whether it may call them now. It is told of them even if not: there may be calls of them in the
    /// conversation, and a provider's cache of a prompt begins with its tools.
    pub may_call: bool,
    /// Whether its provider may search the web for it.
    pub search: WebSearch,
    /// How to answer.
    pub sampling: Sampling,
    /// The account that pays; the daemon's own if not given.
    pub account: Option<Account>,
}

/// A user who pays for model calls with keys of their own. Only a name: the keys are looked up when
/// a model is called and are stored nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// The front end whose names these are.
    pub space: String,
    /// The name there.
    pub name: String,
}

/// Whether the web is searched on the way to an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebSearch {
    /// No, or by a tool like any other.
    #[default]
    Off,
    /// By the model's provider, where it can.
    Native,
}

/// How to answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// At most this many tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// How freely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How much to think first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// What few answers are held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Box<Constraints>>,
}

impl Sampling {
    /// The share of the likeliest tokens that is chosen from.
    pub fn top_p(&self) -> Option<f64> {
        self.constraints.as_ref()?.top_p
    }

    /// Texts at which the answer ends.
    pub fn stop(&self) -> &[String] {
        self.constraints.as_ref().map_or(&[], |constraints| &constraints.stop)
    }

    /// Which of the tools the model must call.
    pub fn tool_choice(&self) -> &ToolChoice {
        self.constraints.as_ref().map_or(&ToolChoice::Auto, |constraints| &constraints.tool_choice)
    }

    /// The form of the answer; free text if there is none.
    pub fn format(&self) -> Option<&OutputFormat> {
        self.constraints.as_ref()?.format.as_ref()
    }
}

/// What few answers are held to, apart so that the settings of the others are small.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Constraints {
    /// The share of the likeliest tokens that is chosen from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the answer ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Which of the tools the model must call, where it may call any.
    #[serde(default, skip_serializing_if = "ToolChoice::is_auto")]
    pub tool_choice: ToolChoice,
    /// The form of the answer; free text if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<OutputFormat>,
}

impl Constraints {
    /// Nothing if there is nothing in it.
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
    /// At least one, whichever.
    Required,
    /// The tool of this name.
    Named(String),
}

impl ToolChoice {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The form of an answer.
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

/// How much to think before answering. Each API has its own words, or numbers, for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Not at all, where that can be had.
    None,
    /// As little as there is.
    Minimal,
    /// A little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::XHigh];

    /// Reads the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == word)
    }

    /// The word for it.
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
    /// From the person.
    User(Vec<PromptPart>),
    /// From a model, earlier.
    Assistant {
        /// Which one, where known. Its thoughts are for itself alone.
        by: Option<ModelRef>,
        /// What it said and asked for, in order.
        parts: Vec<AssistantPart>,
    },
    /// What came of a call of the assistant message before.
    Result {
        /// Which call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// What the model is told.
        text: String,
        /// What it is shown.
        media: Vec<PromptPart>,
        /// Whether it worked.
        ok: bool,
    },
}

/// A piece of a model's message.
#[derive(Clone, Debug, PartialEq)]
pub enum AssistantPart {
    /// The answer.
    Text(String),
    /// What it thought aloud.
    Thought(String),
    /// What only its author can read; see [`Sealed`](super::Sealed).
    Sealed(Value),
    /// A call. What is sealed with it stands right before it.
    Call(PromptCall),
}

/// The text in what a model said, without its thoughts.
pub fn assistant_text(parts: &[AssistantPart]) -> String {
    let text = parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.as_str()),
        AssistantPart::Thought(_) | AssistantPart::Sealed(_) | AssistantPart::Call(_) => None,
    });
    text.collect()
}

/// The calls in what a model said.
pub fn assistant_calls(parts: &[AssistantPart]) -> impl Iterator<Item = &PromptCall> {
    parts.iter().filter_map(|part| match part {
        AssistantPart::Call(call) => Some(call),
        AssistantPart::Text(_) | AssistantPart::Thought(_) | AssistantPart::Sealed(_) => None,
    })
}

/// A piece of a message that is not the model's.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// A file; its content is filled in by whoever can read blobs.
    Media {
        /// What it is to a model.
        kind: MediaKind,
        /// The file name.
        name: String,
        /// The MIME type.
        mime: String,
        /// Where the content is kept.
        blob: BlobId,
        /// The content, once read.
        content: Arc<[u8]>,
    },
}

/// A tool call of an earlier answer.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptCall {
    /// Which call.
    pub call: CallId,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// The arguments as they were written, where that is to be kept to the byte.
    pub written: Option<String>,
}

impl PromptCall {
    /// A call whose arguments may be written in any way.
    pub fn new(call: CallId, tool: impl Into<String>, input: Value) -> Self {
        Self { call, tool: tool.into(), input, written: None }
    }

    /// The arguments as text.
    pub fn arguments(&self) -> String {
        self.written.clone().unwrap_or_else(|| self.input.to_string())
    }
}
