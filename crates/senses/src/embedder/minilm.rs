//! all-MiniLM-L6-v2: the mean of the network's outputs for the tokens of a text.

use std::sync::Arc;

use quintet_kernel::port::SenseError;
use rten::ThreadPool;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::wordpiece::WordPiece;
use crate::Settings;
use crate::network::{Network, read, unusable};
use crate::worker::{Engine, cancelled, failed};

/// Numbers per vector.
pub(super) const DIMENSIONS: usize = 384;
/// The files in the directory of models: weights and tokenizer.
pub(crate) const FILES: &[&str] =
    &["all-minilm-l6-v2/model.safetensors", "all-minilm-l6-v2/tokenizer.json"];
/// Maximum tokens of a text; the rest of a longer text is ignored.
const TOKENS_LIMIT: usize = 256;
/// Tokens per run, including padding. Bounds the memory of a run.
const RUN_TOKENS_LIMIT: usize = 2048;
/// The graph without its weights; `data/minilm.py` makes it.
static GRAPH: &[u8] = include_bytes!("../../data/minilm.onnx");

/// The model in memory.
pub(super) struct MiniLm {
    tokenizer: WordPiece,
    network: Network,
}

/// The tokens of a text and its index in the batch.
struct Tokens {
    place: usize,
    ids: Vec<i32>,
}

impl MiniLm {
    pub(super) fn load(settings: &Settings) -> Result<Self, SenseError> {
        let [weights, tokenizer] = [FILES[0], FILES[1]].map(|file| settings.models_dir.join(file));
        let threads = Arc::new(ThreadPool::with_num_threads(settings.threads));
        let network = Network::with_weights(GRAPH, &weights, &threads)?;
        let json = read(&tokenizer)?;
        let tokenizer =
            WordPiece::from_json(&json).map_err(|error| unusable(&tokenizer, &error))?;
        Ok(Self { tokenizer, network })
    }

    fn embed(
        &self,
        texts: &[&str],
        abandoned: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, SenseError> {
        let tokens = |(place, text): (usize, &&str)| Tokens {
            place,
            ids: self.tokenizer.encode(text, TOKENS_LIMIT),
        };
        let mut tokens: Vec<Tokens> = texts.iter().enumerate().map(tokens).collect();
        // Texts of similar length are computed together, to keep the padding short.
        tokens.sort_by_key(|tokens| tokens.ids.len());
        let mut vectors = vec![Vec::new(); texts.len()];
        let mut rest = &tokens[..];
        while !rest.is_empty() {
            if abandoned() {
                return Err(cancelled());
            }
            let (run, later) = rest.split_at(run_length(rest));
            for (tokens, vector) in run.iter().zip(self.run(run)?) {
                vectors[tokens.place] = vector;
            }
            rest = later;
        }
        Ok(vectors)
    }

    fn run(&self, run: &[Tokens]) -> Result<Vec<Vec<f32>>, SenseError> {
        let longest = run.iter().map(|tokens| tokens.ids.len()).max().unwrap_or(0);
        let mut ids = NdTensor::<i32, 2>::zeros([run.len(), longest]);
        let mut mask = NdTensor::<i32, 2>::zeros([run.len(), longest]);
        for (row, tokens) in run.iter().enumerate() {
            for (column, id) in tokens.ids.iter().enumerate() {
                ids[[row, column]] = *id;
                mask[[row, column]] = 1;
            }
        }
        let output = self.network.run(vec![ids.view().into(), mask.view().into()])?;
        let numbers = output.to_vec();
        if numbers.len() != run.len() * DIMENSIONS {
            return Err(failed("the model gave vectors of another size"));
        }
        numbers.chunks_exact(DIMENSIONS).map(normalized).collect()
    }
}

/// The number of texts from the front of the list that fit into a run.
fn run_length(tokens: &[Tokens]) -> usize {
    let fits = |n: &usize| (n + 1) * tokens[*n].ids.len() <= RUN_TOKENS_LIMIT;
    (1..tokens.len()).take_while(fits).last().unwrap_or(0) + 1
}

/// Scales a vector to length 1. Fails if its length is 0.
fn normalized(vector: &[f32]) -> Result<Vec<f32>, SenseError> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(failed("the model returned a vector with invalid numbers"));
    }
    Ok(vector.iter().map(|x| x / length).collect())
}

impl Engine for MiniLm {
    type Input = Vec<String>;
    type Output = Vec<Vec<f32>>;

    fn run(
        &mut self,
        batch: Vec<Vec<String>>,
        abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<Vec<Vec<f32>>, SenseError>> {
        let texts: Vec<&str> = batch.iter().flatten().map(String::as_str).collect();
        match self.embed(&texts, abandoned) {
            Ok(vectors) => {
                let mut vectors = vectors.into_iter();
                batch.iter().map(|texts| Ok(vectors.by_ref().take(texts.len()).collect())).collect()
            }
            Err(error) => batch.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
