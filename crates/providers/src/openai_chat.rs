//! OpenAI chat completions and compatible APIs.

mod calls;
mod decode;
mod details;
mod list;
mod parts;
mod request;
mod wire;

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::tool::ToolSpec;
use serde_json::value::RawValue;

use crate::answer_parser::AnswerParser;
use crate::family::{Family, ModelRequest};
use crate::inputs;
use crate::model_list_cache::ListedModel;

/// The family.
#[derive(Debug)]
pub(crate) struct Chat;

impl Family for Chat {
    fn path(&self, _model: &str) -> String {
        "chat/completions".into()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn takes(&self, kind: MediaKind, mime: &str) -> bool {
        match kind {
            MediaKind::Image => inputs::essence(mime).starts_with("image/"),
            MediaKind::Audio => parts::audio_format(mime).is_some(),
            MediaKind::File => true,
        }
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], _search: bool) -> serde_json::Result<Box<RawValue>> {
        request::tools(tools)
    }

    fn body(&self, model_request: &ModelRequest<'_>) -> serde_json::Result<Vec<u8>> {
        request::body(model_request)
    }

    fn answer_parser(&self) -> Box<dyn AnswerParser> {
        Box::new(decode::Parser::default())
    }

    fn list_path(&self) -> &'static str {
        "models"
    }

    fn listed(&self, body: &[u8]) -> Option<Vec<ListedModel>> {
        list::read(body)
    }
}
