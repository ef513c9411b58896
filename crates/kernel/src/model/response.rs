//! Responses of models.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelRef;

/// A part of a streamed response.
#[derive(Clone, Debug, PartialEq)]
pub enum Chunk {
    /// Output text.
    Output(Channel, String),
    /// The provider is not available; the call is retried automatically.
    Retrying {
        /// The number of the next attempt, from 1 on.
        attempt: u32,
        /// The delay before it.
        wait: Duration,
        /// What went wrong.
        reason: String,
    },
    /// The response is complete.
    Finished(ModelResponse),
}

/// The kind of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    /// Text of the response.
    Text,
    /// Reasoning.
    Thought,
}

/// The end of a complete response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// Why the response ended.
    pub finish: FinishReason,
    /// The requested calls, in order.
    pub calls: Vec<RawToolCall>,
    /// Tokens of the call.
    pub usage: Usage,
    /// Provider data to send back with the message.
    pub sealed: Vec<Sealed>,
    /// The model that responded, if it differs from the one called.
    pub by: Option<ModelRef>,
}

impl ModelResponse {
    /// A response of the called model without sealed data.
    pub fn new(finish: FinishReason, calls: Vec<RawToolCall>, usage: Usage) -> Self {
        Self { finish, calls, usage, sealed: Vec::new(), by: None }
    }
}

/// Provider data that only its author can read: a signature or encrypted reasoning. Some models
/// continue only if it is sent back unchanged; it is never sent to other models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sealed {
    /// The position in the response.
    pub place: SealPosition,
    /// The data as the provider's API represents it.
    pub content: Value,
}

/// A position in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SealPosition {
    /// After this many bytes of output, both channels counted together.
    Output(u64),
    /// With the call of this number, from 0 on.
    Call(u64),
}

/// A tool call as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RawToolCall {
    /// The model's id for the call; may be empty or repeated.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments as written, which may be invalid JSON.
    pub arguments: String,
}

/// Why a response ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model completed its answer.
    Stop,
    /// The model calls tools.
    ToolCalls,
    /// The answer reached the token limit.
    Length,
    /// The provider withheld the response.
    Refused,
    /// A provider's own reason.
    Other(String),
}

impl FinishReason {
    /// The name used in protocols.
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

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Output tokens that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
    /// Input tokens that the provider added to its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// True if the provider reported nothing and the numbers are estimates.
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
    /// Input and output tokens.
    pub fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// The sum of both.
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
