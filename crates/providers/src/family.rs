//! A family of model APIs: how its requests are written and its answers parsed.
//!
//! Each family is a folder of plain functions over the shared parts of this crate: connections,
//! retries, framing, media. A client library for all of them was considered and rejected, because
//! libraries hide exactly the hard parts of these APIs: signed thoughts must be sent back byte for
//! byte, text must be forwarded with the network read in which it arrived, and a broken stream must
//! be classified. With the shared parts, a family is two short translations.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Prompt, SearchSupport};
use quintet_kernel::tool::ToolSpec;
use serde_json::value::RawValue;

use crate::answer_parser::AnswerParser;
use crate::config::Api;
use crate::facts::Facts;
use crate::model_list_cache::ListedModel;
use crate::quirks::Quirks;
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// A family of model APIs.
pub(crate) trait Family: Send + Sync {
    /// The path of a model call, below the base URL.
    fn path(&self, model: &str) -> String;
    /// The header that carries the key, and the prefix of its value.
    fn key_header(&self) -> (&'static str, &'static str);
    /// Headers that every request has.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// True if a file of this kind and type can be put into a request.
    fn takes(&self, kind: MediaKind, mime: &str) -> bool;
    /// How a provider of this family searches the web for its models, if it can.
    fn searches(&self) -> SearchSupport {
        SearchSupport::Never
    }
    /// The tool definitions, including the provider's own search.
    fn tools(&self, tools: &[Arc<ToolSpec>], search: bool) -> serde_json::Result<Box<RawValue>>;
    /// The body of a request.
    fn body(&self, model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>>;
    /// A parser for one answer.
    fn answer_parser(&self) -> Box<dyn AnswerParser>;
    /// The path of the list of models, below the base URL.
    fn list_path(&self) -> &'static str;
    /// Parses a list of models; `None` if it is malformed.
    fn listed(&self, body: &[u8]) -> Option<Vec<ListedModel>>;
}

/// The parts of a request to a model.
pub(crate) struct ModelRequest<'a> {
    pub(crate) prompt: &'a Prompt,
    pub(crate) facts: &'a Facts,
    pub(crate) quirks: &'a Quirks,
    /// The tools, written by [`Family::tools`]; `None` if there are none.
    pub(crate) tools: Option<&'a RawValue>,
    /// True if the provider's own search is among the tools.
    pub(crate) search: bool,
}

impl ModelRequest<'_> {
    /// True if the request lists tools that the model must not call.
    pub(crate) fn keeps_from_calling(&self) -> bool {
        self.tools.is_some() && !self.prompt.may_call
    }
}

/// The family of an API over HTTP; `None` for models inside the daemon.
pub(crate) fn of(api: Api) -> Option<&'static dyn Family> {
    match api {
        Api::OpenAiChat => Some(&openai_chat::Chat),
        Api::OpenAiResponses => Some(&openai_responses::Responses),
        Api::Anthropic => Some(&anthropic::Messages),
        Api::Gemini => Some(&gemini::Generation),
        Api::Demo => None,
    }
}
