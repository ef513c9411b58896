//! The events of an answer in wire format. Every field is optional.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    pub(super) candidates: Vec<Candidate<'a>>,
    pub(super) usage_metadata: Option<Usage>,
    pub(super) prompt_feedback: Option<Feedback>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the alternative answers; only the first is used.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) content: Content<'a>,
    pub(super) finish_reason: Option<String>,
    pub(super) grounding_metadata: Option<Grounding>,
}

/// The searches and sources of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Grounding {
    pub(super) web_search_queries: Vec<String>,
    pub(super) grounding_chunks: Vec<Source>,
}

/// A source of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Source {
    pub(super) web: Option<Page>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Page {
    pub(super) uri: String,
    pub(super) title: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Vec<Part<'a>>,
}

/// A piece of text, of thought, or a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    pub(super) thought: bool,
    #[serde(borrow)]
    pub(super) thought_signature: Text<'a>,
    #[serde(borrow)]
    pub(super) function_call: Option<Call<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
}

/// The reason why a prompt was blocked.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Feedback {
    pub(super) block_reason: Option<String>,
}

/// A string that borrows where it can.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Token counts.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Usage {
    pub(super) prompt_token_count: u64,
    pub(super) tool_use_prompt_token_count: u64,
    pub(super) candidates_token_count: u64,
    pub(super) thoughts_token_count: u64,
    pub(super) cached_content_token_count: u64,
}
