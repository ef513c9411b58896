//! What the core hears from a model.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelRef;

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
    Finished(ModelResponse),
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// Why it ended.
    pub finish: FinishReason,
    /// The calls it asks for, in order.
    pub calls: Vec<RawToolCall>,
    /// What it cost.
    pub usage: Usage,
    /// What its author wants to have back with it.
    pub sealed: Vec<Sealed>,
    /// The model that answered, where another one was called.
    pub by: Option<ModelRef>,
}

impl ModelResponse {
    /// An answer of the model that was asked, with nothing sealed.
    pub fn new(finish: FinishReason, calls: Vec<RawToolCall>, usage: Usage) -> Self {
        Self { finish, calls, usage, sealed: Vec::new(), by: None }
    }
}

/// A piece of an answer that only its author can read: a signature, or a thought in cipher. Some
/// models go on only if they are shown it again, exactly as it came; nobody else ever is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// Where it stands.
    pub place: SealPosition,
    /// What its author's API made of it.
    pub content: Value,
}

/// A place in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealPosition {
    /// Right after so many bytes of output, both channels counted together.
    Output(u64),
    /// With the call of this number, counted from 0.
    Call(u64),
}

/// A call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RawToolCall {
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
pub enum FinishReason {
    /// The model completed its answer.
    Stop,
    /// The model calls tools.
    ToolCalls,
    /// The answer reached the token limit.
    Length,
    /// The provider withheld it.
    Refused,
    /// Some other word of the provider's.
    Other(String),
}

impl FinishReason {
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
    /// Of those read, how many the provider put into its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// Whether the provider counted nothing and this is a guess.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
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
            cache_written: self.cache_written.saturating_add(other.cache_written),
            estimated: self.estimated || other.estimated,
        }
    }
}
