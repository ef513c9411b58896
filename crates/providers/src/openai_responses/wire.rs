//! The events of an answer in wire format. Every field is optional.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// One event of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    pub(super) output_index: u64,
    #[serde(borrow)]
    pub(super) delta: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) item: Option<Item<'a>>,
    pub(super) annotation: Option<Annotation>,
    #[serde(borrow)]
    pub(super) response: Option<Response<'a>>,
}

/// An annotation of a piece of text, such as the page that it cites.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotation {
    pub(super) url: Option<String>,
    pub(super) title: Option<String>,
}

/// A part of the answer: a message, a call, a thought or a search.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) call_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Text<'a>>,
    pub(super) summary: Option<Vec<Summary>>,
    #[serde(borrow)]
    pub(super) encrypted_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    /// In a search: the query, or the page that is read.
    #[serde(borrow)]
    pub(super) action: Option<&'a RawValue>,
}

/// A piece of the summary of a thought.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Summary {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) text: String,
}

/// The complete answer, sent at its end.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    pub(super) usage: Option<Usage>,
    pub(super) incomplete_details: Option<Incomplete>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// The reason why an answer is incomplete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Incomplete {
    pub(super) reason: String,
}

/// A string that borrows where it can.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Token counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) input_tokens_details: Option<ReadDetails>,
    pub(super) output_tokens_details: Option<WrittenDetails>,
}

/// Details of the input tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReadDetails {
    pub(super) cached_tokens: u64,
}

/// Details of the output tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WrittenDetails {
    pub(super) reasoning_tokens: u64,
}

/// The text of a field; a missing field and null are empty.
pub(super) fn text<'a>(text: &'a Option<Text<'_>>) -> &'a str {
    text.as_ref().map_or("", |text| &text.0)
}
