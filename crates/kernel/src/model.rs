//! What the core says to a model and hears from it, whatever the model's API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{BlobId, CallId};
use crate::message::MediaKind;
use crate::tool;

/// A model by provider and name, written `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModelRef {
    /// A provider of the configuration.
    pub provider: String,
    /// The model's name there; may contain slashes itself.
    pub model: String,
}

impl ModelRef {
    /// Reads `provider/model`.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.split_once('/')?;
        let whole = !provider.is_empty() && !model.is_empty();
        whole.then(|| Self { provider: provider.into(), model: model.into() })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}

impl TryFrom<String> for ModelRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not of the form provider/model"))
    }
}

/// What a model can do, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Media it takes besides text.
    pub inputs: Vec<MediaKind>,
    /// Whether it can call tools.
    pub tools: bool,
    /// Tokens it can read at once, where known.
    pub context_window: Option<u64>,
}

/// A model that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub model: ModelRef,
    /// What it can do.
    pub profile: Profile,
}

/// Everything a model call needs.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Which model.
    pub model: ModelRef,
    /// Standing instructions.
    pub system: String,
    /// The conversation, oldest first.
    pub messages: Vec<PromptMessage>,
    /// The tools it may ask for.
    pub tools: Vec<Arc<tool::Spec>>,
    /// How to answer.
    pub sampling: Sampling,
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
}

/// A message as a model reads it.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptMessage {
    /// From the person.
    User(Vec<PromptPart>),
    /// From the model itself, earlier.
    Assistant {
        /// What it said.
        text: String,
        /// What it asked for.
        calls: Vec<PromptCall>,
    },
    /// What came of a call of the assistant message before.
    Result {
        /// Which call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// What the model is told.
        text: String,
        /// Whether it worked.
        ok: bool,
    },
}

/// A piece of a person's message.
#[derive(Clone, Debug, PartialEq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// A file; its content is filled in by whoever can read blobs.
    Media {
        /// What it is to a model.
        kind: MediaKind,
        /// Its file name.
        name: String,
        /// Its type.
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
    /// Its arguments.
    pub input: Value,
}

/// What a model stream brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// A piece of output.
    Output(Channel, String),
    /// The provider said "not now"; another try follows by itself.
    Retrying {
        /// Which try comes next, counted from 1.
        attempt: u32,
        /// How long until then.
        wait: Duration,
        /// What went wrong.
        reason: String,
    },
    /// The answer is whole.
    Finished(Answer),
}

/// Which kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// The answer.
    Text,
    /// Thinking aloud.
    Thought,
}

/// The end of a whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Why it ended.
    pub finish: Finish,
    /// The calls it asks for, in order.
    pub calls: Vec<AskedCall>,
    /// What it cost.
    pub usage: Usage,
}

/// A call as the model wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedCall {
    /// The model's own id for it; may be empty or repeat.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as written, which may not even be JSON.
    pub arguments: String,
}

/// Why an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done.
    Stop,
    /// It asks for tools.
    ToolCalls,
    /// It ran into the token limit.
    Length,
    /// The provider withheld it.
    Refused,
    /// Some other word of the provider's.
    Other(String),
}

impl Finish {
    /// The word for it.
    pub fn name(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::Refused => "content_filter",
            Self::Other(word) => word,
        }
    }
}

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of those read, how many came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Of those written, how many were thought.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Read and written.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

/// Why a model call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of trouble, for programs.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
}

/// Kinds of trouble, by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The provider asks for patience (429), and the tries are used up.
    RateLimited,
    /// The provider is down or cannot be reached, and the tries are used up.
    Unavailable,
    /// The key is wrong or may not do this.
    Unauthorized,
    /// No such model.
    UnknownModel,
    /// The prompt is longer than the model can read.
    ContextOverflow,
    /// The provider does not take the request.
    Rejected,
    /// The stream broke off in the middle.
    Cut,
    /// The stream fell silent.
    Stalled,
    /// What came back makes no sense.
    Malformed,
    /// The prompt has media that the model does not take.
    UnsupportedInput,
}

impl FailureKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::UnknownModel => "unknown_model",
            Self::ContextOverflow => "context_overflow",
            Self::Rejected => "rejected",
            Self::Cut => "stream_cut",
            Self::Stalled => "stream_stalled",
            Self::Malformed => "malformed_answer",
            Self::UnsupportedInput => "unsupported_input",
        }
    }
}
