//! Gemini `generateContent`.

mod contents;
mod decode;
mod request;
mod schema;
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
pub(crate) struct Generation;

impl Family for Generation {
    fn path(&self, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("models/{model}:streamGenerateContent?alt=sse")
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn takes(&self, kind: MediaKind, mime: &str) -> bool {
        match kind {
            MediaKind::Image => inputs::is_picture(mime),
            MediaKind::Audio => inputs::essence(mime).starts_with("audio/"),
            MediaKind::File => inputs::essence(mime) == "application/pdf",
        }
    }

    /// Search must be the only tool of a request: most models refuse to combine it with functions.
    fn searches(&self) -> SearchSupport {
        SearchSupport::WithoutTools
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
        "models?pageSize=1000"
    }

    fn listed(&self, body: &[u8]) -> Option<Vec<ListedModel>> {
        #[derive(Deserialize)]
        struct Models {
            models: Vec<Model>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Model {
            name: String,
            #[serde(default)]
            display_name: Option<String>,
            #[serde(default)]
            input_token_limit: Option<u64>,
            #[serde(default)]
            output_token_limit: Option<u64>,
            #[serde(default)]
            supported_generation_methods: Vec<String>,
        }
        let models: Models = serde_json::from_slice(body).ok()?;
        let talks = |model: &Model| {
            model.supported_generation_methods.iter().any(|method| method == "generateContent")
        };
        let found = |model: Model| ListedModel {
            id: model.name.strip_prefix("models/").unwrap_or(&model.name).into(),
            label: model.display_name,
            context_window: model.input_token_limit,
            max_output: model.output_token_limit,
        };
        Some(models.models.into_iter().filter(talks).map(found).collect())
    }
}
