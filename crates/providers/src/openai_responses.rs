//! The OpenAI responses API, without state at the provider: every request contains the whole conversation,
//! and thoughts are received and sent back encrypted.

mod decode;
mod items;
mod request;
mod wire;

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::SearchSupport;
use quintet_kernel::tool::ToolSpec;
use serde_json::value::RawValue;

use crate::answer_parser::AnswerParser;
use crate::family::{Family, ModelRequest};
use crate::inputs;
use crate::model_list_cache::ListedModel;
use crate::openai_chat::Chat;

/// The family.
#[derive(Debug)]
pub(crate) struct Responses;

impl Family for Responses {
    fn path(&self, _model: &str) -> String {
        "responses".into()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        Chat.key_header()
    }

    fn takes(&self, kind: MediaKind, mime: &str) -> bool {
        match kind {
            MediaKind::Image => inputs::is_picture(mime),
            MediaKind::Audio => false,
            MediaKind::File => true,
        }
    }

    fn searches(&self) -> SearchSupport {
        SearchSupport::WithTools
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], search: bool) -> serde_json::Result<Box<RawValue>> {
        request::tools(tools, search)
    }

    fn body(&self, model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
        request::body(model_request)
    }

    fn answer_parser(&self) -> Box<dyn AnswerParser> {
        Box::new(decode::Parser::default())
    }

    fn list_path(&self) -> &'static str {
        Chat.list_path()
    }

    fn listed(&self, body: &[u8]) -> Option<Vec<ListedModel>> {
        Chat.listed(body)
    }
}
