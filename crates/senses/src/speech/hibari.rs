//! hibari: computes the spectrum of a voice from phonemes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{Audio, SenseError};
use rten::{ThreadPool, Value};
use rten_tensor::Tensor;
use serde::de::DeserializeOwned;

use super::lexicon::Lexicon;
use super::phonemes::Phonemizer;
use super::tagger::Tagger;
use super::unknown_words::UnknownWords;
use super::vocoder::{SAMPLE_RATE, Spectrum, Vocoder};
use crate::Settings;
use crate::graph::{Graph, numbers};
use crate::network::{read, unusable};
use crate::worker::{Engine, failed};

/// The files in the directory of models.
pub(crate) const FILES: &[&str] = &[
    "hibari/hibari.onnx",
    "hibari/vocab.json",
    "hibari/lexicon-gold.json.gz",
    "hibari/lexicon-silver.json.gz",
    "hibari/tagger.json.gz",
    "hibari/oov.onnx",
    "hibari/oov.json",
];
/// Phonemes per run; a longer sentence is split between words.
const PHONEMES_LIMIT: usize = 400;
/// The default speed of the voice.
const SPEED: f32 = 1.0;

/// The voice in memory.
pub(super) struct Hibari {
    network: Graph,
    /// The number of each phoneme.
    alphabet: HashMap<char, i32>,
    phonemizer: Phonemizer,
    vocoder: Vocoder,
}

impl Hibari {
    pub(super) fn load(settings: &Settings) -> Result<Self, SenseError> {
        let [network, alphabet, gold, silver, tagger, unknown, unknown_letters] =
            std::array::from_fn::<PathBuf, 7, _>(|n| settings.models_dir.join(FILES[n]));
        let threads = Arc::new(ThreadPool::with_num_threads(settings.threads));
        let alphabet: HashMap<char, i32> = json(&alphabet)?;
        let unknown = UnknownWords::new(Graph::load(&unknown, &threads)?, json(&unknown_letters)?);
        let lexicon = Lexicon::new(json(&gold)?, json(&silver)?);
        let phonemizer = Phonemizer::new(lexicon, Tagger::new(json(&tagger)?), unknown);
        let network = Graph::load(&network, &threads)?;
        Ok(Self { network, alphabet, phonemizer, vocoder: Vocoder::new() })
    }

    fn speak(&self, sentence: &str) -> Result<Audio, SenseError> {
        let phonemes = self.phonemizer.phonemes(sentence)?;
        let mut samples = Vec::new();
        for part in parts(&phonemes) {
            let wave = self.synthesize(part)?;
            samples.extend(wave.iter().map(|x| (x.clamp(-1.0, 1.0) * 32_767.0) as i16));
        }
        Ok(Audio { samples, rate: SAMPLE_RATE })
    }

    fn synthesize(&self, phonemes: &str) -> Result<Vec<f32>, SenseError> {
        let known = phonemes.chars().filter_map(|phoneme| self.alphabet.get(&phoneme).copied());
        let ids: Vec<i32> = std::iter::once(0).chain(known).chain([0]).collect();
        // Both ends need silence; punctuation alone is not spoken.
        if !phonemes.chars().any(char::is_alphabetic) || ids.len() < 3 {
            return Ok(Vec::new());
        }
        let ids = Tensor::from_data(&[1, ids.len()], ids);
        let speed = Tensor::from_data(&[1], vec![SPEED]);
        let inputs = vec![("ids", ids.into()), ("speed", speed.into())];
        let outputs = self.network.run(inputs, &["lh", "theta", "ln", "lr", "phi", "f0"])?;
        let outputs: [Value; 6] =
            outputs.try_into().map_err(|_| failed("the voice gave no spectrum"))?;
        let [harmonics, theta, noise, free, phi, pitch] = outputs.map(numbers);
        let spectrum = Spectrum {
            harmonics: harmonics?,
            theta: theta?,
            noise: noise?,
            free: free?,
            phi: phi?,
            pitch: pitch?,
        };
        self.vocoder.wave(&spectrum).ok_or_else(|| failed("the voice gave no proper spectrum"))
    }
}

/// Splits a long string of phonemes between words, preferably at punctuation.
fn parts(phonemes: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), phonemes);
    while let Some((limit, _)) = rest.char_indices().nth(PHONEMES_LIMIT) {
        let head = &rest[..limit];
        let clause = head.rfind([',', ';', ':', '—', '.', '!', '?']).filter(|at| *at > limit / 2);
        let cut = clause.or_else(|| head.rfind(' ')).filter(|at| *at > 0).unwrap_or(limit);
        let cut = rest[cut..].chars().next().map_or(cut, |letter| cut + letter.len_utf8());
        parts.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    parts.push(rest);
    parts
}

/// Reads a JSON file that may be compressed.
fn json<T: DeserializeOwned>(path: &Path) -> Result<T, SenseError> {
    let bytes = read(path)?;
    let parsed = match path.extension() {
        Some(extension) if extension == "gz" => {
            let decoder = std::io::BufReader::new(flate2::read::GzDecoder::new(&bytes[..]));
            serde_json::from_reader(decoder)
        }
        _ => serde_json::from_slice(&bytes),
    };
    parsed.map_err(|error| unusable(path, &error))
}

impl Engine for Hibari {
    type Input = String;
    type Output = Audio;

    fn run(
        &mut self,
        batch: Vec<String>,
        _abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<Audio, SenseError>> {
        batch.iter().map(|sentence| self.speak(sentence)).collect()
    }
}
