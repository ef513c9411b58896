//! The list of models. Compatible servers add fields that OpenAI does not have, under various names.

use serde::Deserialize;

use crate::model_list_cache::ListedModel;

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    /// OpenRouter, Together, Moonshot.
    #[serde(default, alias = "display_name")]
    name: Option<String>,
    /// OpenRouter, Together, Moonshot; Groq; vLLM; LM Studio; Mistral.
    #[serde(
        default,
        alias = "context_window",
        alias = "max_model_len",
        alias = "max_context_length",
        alias = "loaded_context_length"
    )]
    context_length: Option<u64>,
    /// Groq.
    #[serde(default)]
    max_completion_tokens: Option<u64>,
    /// The server of llama.cpp.
    #[serde(default)]
    meta: Option<Meta>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    n_ctx_train: Option<u64>,
}

/// Parses the list; entries that are no models are left out.
pub(crate) fn read(body: &[u8]) -> Option<Vec<ListedModel>> {
    let models: Models = serde_json::from_slice(body).ok()?;
    let found = |model: Model| ListedModel {
        id: model.id,
        label: model.name,
        context_window: model.context_length.or(model.meta.and_then(|meta| meta.n_ctx_train)),
        max_output: model.max_completion_tokens,
    };
    Some(models.data.into_iter().map(found).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_windows_have_many_names() {
        let body = br#"{"object":"list","data":[{"id":"a","name":"A","context_length":1},
            {"id":"b","max_model_len":2},{"id":"c","meta":{"n_ctx_train":3}},{"id":"d"}]}"#;
        let found = read(body).unwrap();
        let windows: Vec<_> = found.iter().map(|found| found.context_window).collect();
        assert_eq!(windows, [Some(1), Some(2), Some(3), None]);
        assert_eq!(read(b"<html>"), None);
    }
}
