//! Pronounces words that are in no lexicon with a small network.

use std::collections::HashMap;

use quintet_kernel::port::SenseError;
use rten_tensor::Tensor;
use rten_tensor::prelude::*;
use serde::Deserialize;

use crate::graph::Graph;
use crate::worker::failed;

/// The letters and phonemes of the network, numbered from 1 on.
#[derive(Debug, Deserialize)]
pub(super) struct Letters {
    r#in: Vec<char>,
    out: Vec<char>,
    maxlen: usize,
}

/// The network in memory.
pub(super) struct UnknownWords {
    network: Graph,
    letters: HashMap<char, i32>,
    phonemes: Vec<char>,
    limit: usize,
}

impl UnknownWords {
    pub(super) fn new(network: Graph, letters: Letters) -> Self {
        let numbered = letters.r#in.iter().zip(1..).map(|(letter, number)| (*letter, number));
        Self { network, letters: numbered.collect(), phonemes: letters.out, limit: letters.maxlen }
    }

    /// The phonemes of a word; empty if its letters are not known.
    pub(super) fn phonemes(&self, word: &str) -> Result<String, SenseError> {
        let ids = word.chars().filter_map(|letter| self.letters.get(&letter).copied());
        let ids: Vec<i32> = ids.take(self.limit).collect();
        if ids.is_empty() {
            return Ok(String::new());
        }
        let input = Tensor::from_data(&[1, ids.len()], ids);
        let output = self.network.run(vec![("chars", input.into())], &["ids"])?.pop();
        let output: Option<Tensor<i32>> = output.and_then(|output| output.try_into().ok());
        let ids = output.ok_or_else(|| failed("the model gave no phonemes"))?.to_vec();
        // Repetitions are merged, and 0 separates actual ones.
        let (mut phonemes, mut last) = (String::new(), 0);
        for id in ids {
            if id != last && id > 0 {
                phonemes.extend(self.phonemes.get(id as usize - 1));
            }
            last = id;
        }
        Ok(phonemes)
    }
}
