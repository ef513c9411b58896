//! Counts tokens with a model's own vocabulary, which is loaded without its weights.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;

use super::Settings;
use super::load::backend;
use crate::weights::Weights;

/// The loaded vocabularies.
#[derive(Debug, Default)]
pub(super) struct Vocabularies {
    read: Mutex<HashMap<&'static str, Arc<LlamaModel>>>,
}

impl Vocabularies {
    /// The number of tokens of a text; `None` if the model's file does not exist. The first call
    /// loads the vocabulary.
    pub(super) fn count(
        &self,
        settings: &Settings,
        weights: &'static Weights,
        text: &str,
    ) -> Option<u64> {
        let model = self.of(settings, weights)?;
        Some(model.vocab().tokenize(text.as_bytes(), false, false).len() as u64)
    }

    fn of(&self, settings: &Settings, weights: &'static Weights) -> Option<Arc<LlamaModel>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = read.get(weights.name.as_str()) {
            return Some(Arc::clone(model));
        }
        let path = settings.models_dir.join(&weights.file.name);
        let params = LlamaModelParams::default().with_vocab_only(true);
        let model = path.is_file().then(|| backend().ok())??;
        let model = Arc::new(LlamaModel::load_from_file(model, &path, &params).ok()?);
        read.insert(&weights.name, Arc::clone(&model));
        Some(model)
    }
}
