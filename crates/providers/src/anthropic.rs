//! Anthropic messages.

mod blocks;
mod decode;
mod request;
mod search;
mod wire;

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::SearchSupport;
use quintet_kernel::tool::ToolSpec;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer_parser::AnswerParser;
use crate::family::{Family, ModelRequest};
use crate::inputs;
use crate::model_list_cache::ListedModel;

/// The family.
#[derive(Debug)]
pub(crate) struct Messages;

impl Family for Messages {
    fn path(&self, _model: &str) -> String {
        "messages".into()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn takes(&self, kind: MediaKind, mime: &str) -> bool {
        match kind {
            MediaKind::Image => inputs::is_picture(mime),
            MediaKind::Audio => false,
            MediaKind::File => inputs::essence(mime) == "application/pdf",
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
        "models?limit=1000"
    }

    fn listed(&self, body: &[u8]) -> Option<Vec<ListedModel>> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<Model>,
        }
        #[derive(Deserialize)]
        struct Model {
            id: String,
            #[serde(default)]
            display_name: Option<String>,
        }
        let models: Models = serde_json::from_slice(body).ok()?;
        let found = |model: Model| ListedModel {
            id: model.id,
            label: model.display_name,
            ..ListedModel::default()
        };
        Some(models.data.into_iter().map(found).collect())
    }
}
