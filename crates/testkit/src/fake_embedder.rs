//! An embedder without weights: texts that share words or synonyms have similar vectors.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::future::pending;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use quintet_kernel::port::{BoxFuture, Embedder, EmbeddingSpace, Embeddings, SenseError};

/// An embedder whose vectors depend only on the text.
#[derive(Debug)]
pub struct FakeEmbedder {
    space: EmbeddingSpace,
    synonyms: HashMap<String, String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ready: Option<SenseError>,
    failure: Option<SenseError>,
    hangs: bool,
    texts: Vec<String>,
}

impl FakeEmbedder {
    /// An embedder with this model name; the words of each group are synonyms.
    pub fn new(model: &str, groups: &[&[&str]]) -> Self {
        let space =
            EmbeddingSpace { provider: "fake".into(), model: model.into(), dimensions: 384 };
        let group = |words: &&[&str]| {
            let first = words.first().copied().unwrap_or_default().to_owned();
            words.iter().map(|word| ((*word).to_owned(), first.clone())).collect::<Vec<_>>()
        };
        let synonyms = groups.iter().flat_map(group).collect();
        Self { space, synonyms, state: Mutex::default() }
    }

    /// Makes the embedder not ready for this reason, or ready if `None`.
    pub fn set_unready(&self, reason: Option<SenseError>) {
        self.state().ready = reason;
    }

    /// Makes every batch fail like this, or none if `None`.
    pub fn set_failure(&self, failure: Option<SenseError>) {
        self.state().failure = failure;
    }

    /// Makes all later batches hang forever.
    pub fn hang(&self) {
        self.state().hangs = true;
    }

    /// The texts of all batches so far, in order.
    pub fn texts(&self) -> Vec<String> {
        self.state().texts.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.space.dimensions];
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            let mut hasher = DefaultHasher::new();
            self.synonyms.get(&word).unwrap_or(&word).hash(&mut hasher);
            let place = hasher.finish() % self.space.dimensions as u64;
            vector[usize::try_from(place).unwrap_or(0)] += 1.0;
        }
        let length = vector.iter().map(|x: &f32| x * x).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
        vector.iter().map(|x| x / length).collect()
    }
}

impl Embedder for FakeEmbedder {
    fn space(&self) -> EmbeddingSpace {
        self.space.clone()
    }

    fn ready(&self) -> Result<(), SenseError> {
        self.state().ready.clone().map_or(Ok(()), Err)
    }

    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>> {
        Box::pin(async move {
            let (failure, hangs) = {
                let mut state = self.state();
                state.texts.extend(texts.iter().cloned());
                (state.failure.clone(), state.hangs)
            };
            if hangs {
                return pending().await;
            }
            if let Some(failure) = failure {
                return Err(failure);
            }
            let vectors = texts.iter().map(|text| self.vector(text)).collect();
            Ok(Embeddings { vectors, queue_wait_ms: 0.0, service_time_ms: 0.0 })
        })
    }
}
