//! A piece of an answer in wire format. Every field is optional.
//!
//! Strings borrow from the event unless they have escapes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One event of a stream, or the whole of a plain answer.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Usage>,
    #[serde(default, borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the alternative answers; only the first is used.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    index: Option<u32>,
    #[serde(default, borrow, alias = "message")]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    finish_reason: Option<Text<'a>>,
}

impl Choice<'_> {
    pub(super) fn is_first(&self) -> bool {
        self.index.unwrap_or(0) == 0
    }

    /// The finish reason, once there is one.
    pub(super) fn finish(&self) -> Option<&str> {
        Some(text(&self.finish_reason)).filter(|word| !word.is_empty())
    }
}

/// The new part or, in a plain answer, the whole message.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(default, borrow)]
    content: Option<Text<'a>>,
    /// The name for thoughts of DeepSeek and most others.
    #[serde(default, borrow)]
    reasoning_content: Option<Text<'a>>,
    /// OpenRouter's name for thoughts.
    #[serde(default, borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(default, borrow)]
    refusal: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    /// Sealed thoughts of a router's models.
    #[serde(default)]
    pub(super) reasoning_details: Option<Vec<Map<String, Value>>>,
}

impl Delta<'_> {
    pub(super) fn content(&self) -> &str {
        text(&self.content)
    }

    pub(super) fn refusal(&self) -> &str {
        text(&self.refusal)
    }

    /// Thoughts under either name; some servers send both.
    pub(super) fn thought(&self) -> &str {
        match text(&self.reasoning_content) {
            "" => text(&self.reasoning),
            thought => thought,
        }
    }
}

/// A piece of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default, borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) function: Option<Function<'a>>,
}

/// The function's name and a piece of its arguments.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(default, borrow)]
    pub(super) name: Option<Text<'a>>,
    /// A string of JSON; a few servers send the JSON itself.
    #[serde(default, borrow)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// A string that borrows if possible, which `Option<Cow<str>>` would not.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Token counts.
#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<u64>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u64>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    pub(super) completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for cached tokens.
    #[serde(default)]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
}

/// Details of the input tokens.
#[derive(Debug, Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<u64>,
    /// OpenRouter's name for tokens put into the cache.
    #[serde(default)]
    pub(super) cache_write_tokens: Option<u64>,
}

/// Details of the output tokens.
#[derive(Debug, Deserialize)]
pub(super) struct CompletionDetails {
    #[serde(default)]
    pub(super) reasoning_tokens: Option<u64>,
}

/// The text of a field; a missing field and null are empty.
pub(super) fn text<'a>(text: &'a Option<Text<'_>>) -> &'a str {
    text.as_ref().map_or("", |text| &text.0)
}
