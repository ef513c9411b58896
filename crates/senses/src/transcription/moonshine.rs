//! Moonshine tiny: generates tokens from the samples of an English utterance.

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::GzDecoder;
use quintet_kernel::port::{RECOGNITION_SAMPLE_RATE, SenseError};
use rten::{ThreadPool, Value};
use rten_tensor::Tensor;

use crate::Settings;
use crate::graph::{Graph, numbers};
use crate::worker::{Engine, failed};

/// The files in the directory of models: encoder and decoder.
pub(crate) const FILES: &[&str] = &["moonshine-tiny/encoder.onnx", "moonshine-tiny/decoder.onnx"];
/// The text of each token: a length of one or two bytes and that many bytes.
static TOKENS: &[u8] = include_bytes!("../../data/moonshine-tokens.bin.gz");
const START_TOKEN: usize = 1;
const END_TOKEN: usize = 2;
/// Lower tokens are control tokens, not text.
const FIRST_TEXT_TOKEN: usize = 3;
const HEADS: usize = 8;
const HEAD_SIZE: usize = 36;
/// More tokens per second than people speak; only a model that repeats itself exceeds this.
const TOKENS_PER_SECOND: f32 = 6.5;
const SAMPLE_RATE: usize = RECOGNITION_SAMPLE_RATE as usize;
/// Shorter utterances get silence at both ends, because otherwise nothing might be recognized.
const SHORT_UTTERANCE_SAMPLES: usize = SAMPLE_RATE * 3 / 2;
const PADDING_SAMPLES: usize = SAMPLE_RATE * 3 / 10;

/// The model in memory.
pub(super) struct Moonshine {
    encoder: Graph,
    decoder: Graph,
    /// The decoder's inputs that carry over from token to token.
    inputs: Vec<String>,
    /// The outputs that become these inputs, after the logits.
    outputs: Vec<String>,
    tokens: Vec<Vec<u8>>,
}

impl Moonshine {
    pub(super) fn load(settings: &Settings) -> Result<Self, SenseError> {
        let threads = Arc::new(ThreadPool::with_num_threads(settings.threads));
        let [encoder, decoder] =
            [FILES[0], FILES[1]].map(|file| Graph::load(&settings.models_dir.join(file), &threads));
        let (encoder, decoder) = (encoder?, decoder?);
        let parts = ["decoder.key", "decoder.value", "encoder.key", "encoder.value"];
        let names = (0..).flat_map(|layer| parts.map(|part| format!("{layer}.{part}")));
        let has = |name: &String| decoder.has(&format!("past_key_values.{name}"));
        let names: Vec<String> = names.take_while(has).collect();
        let outputs = names.iter().map(|name| format!("present.{name}"));
        let outputs = std::iter::once("logits".to_owned()).chain(outputs).collect();
        let inputs = names.iter().map(|name| format!("past_key_values.{name}")).collect();
        Ok(Self { encoder, decoder, inputs, outputs, tokens: tokens()? })
    }

    fn text(&self, samples: &[f32]) -> Result<String, SenseError> {
        if samples.is_empty() {
            return Ok(String::new());
        }
        let samples = match samples.len() {
            short if short < SHORT_UTTERANCE_SAMPLES => {
                [&[0.0; PADDING_SAMPLES], samples, &[0.0; PADDING_SAMPLES]].concat()
            }
            _ => samples.to_vec(),
        };
        let limit = (samples.len() as f32 / SAMPLE_RATE as f32 * TOKENS_PER_SECOND) as usize + 2;
        let input = Tensor::from_data(&[1, samples.len()], samples);
        let hidden = self.encoder.run(vec![("input_values", input.into())], &["last_hidden_state"]);
        let hidden = hidden?.pop().ok_or_else(|| failed("the encoder gave no output"))?;
        let tokens = self.decode(&hidden, limit)?;
        let bytes =
            tokens.into_iter().filter_map(|token| self.tokens.get(token)).flatten().copied();
        let bytes: Vec<u8> = bytes.collect();
        Ok(String::from_utf8_lossy(&bytes).replace('\u{2581}', " ").trim().to_owned())
    }

    /// Generates the most likely tokens one by one, until the end token or the limit.
    fn decode(&self, hidden: &Value, limit: usize) -> Result<Vec<usize>, SenseError> {
        let empty = || Value::from(Tensor::<f32>::zeros(&[1, HEADS, 0, HEAD_SIZE]));
        let mut cache: Vec<Value> = self.inputs.iter().map(|_| empty()).collect();
        let outputs: Vec<&str> = self.outputs.iter().map(String::as_str).collect();
        let (mut tokens, mut token) = (Vec::new(), START_TOKEN);
        for step in 0..limit {
            let ids = Tensor::from_data(&[1, 1], vec![token as i32]);
            let cached = Tensor::from_data(&[1], vec![i32::from(step > 0)]);
            let mut inputs = vec![
                ("input_ids", ids.into()),
                ("encoder_hidden_states", hidden.into()),
                ("use_cache_branch", cached.into()),
            ];
            let past = self.inputs.iter().zip(&cache);
            inputs.extend(past.map(|(name, value)| (name.as_str(), value.into())));
            let mut results = self.decoder.run(inputs, &outputs)?.into_iter();
            let logits = results.next().ok_or_else(|| failed("the decoder gave no output"))?;
            token = most_likely(&numbers(logits)?);
            if token == END_TOKEN {
                break;
            }
            if token >= FIRST_TEXT_TOKEN {
                tokens.push(token);
            }
            for ((slot, value), name) in cache.iter_mut().zip(results).zip(&self.inputs) {
                // The decoder's cache of the encoder's output does not change after the first step.
                if step == 0 || name.contains(".decoder.") {
                    *slot = value;
                }
            }
        }
        Ok(tokens)
    }
}

fn most_likely(logits: &[f32]) -> usize {
    let likely = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    likely.map_or(END_TOKEN, |(token, _)| token)
}

fn tokens() -> Result<Vec<Vec<u8>>, SenseError> {
    let mut bytes = Vec::new();
    let read = GzDecoder::new(TOKENS).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("the tokens cannot be read: {error}")))?;
    let (mut tokens, mut rest) = (Vec::new(), &bytes[..]);
    while let [first, after @ ..] = rest {
        let (length, after) = match (*first as usize, after) {
            (first, [second, after @ ..]) if first >= 128 => {
                (*second as usize * 128 + first - 128, after)
            }
            (first, after) => (first, after),
        };
        let (token, after) = after.split_at_checked(length).unwrap_or((after, &[]));
        tokens.push(token.to_vec());
        rest = after;
    }
    Ok(tokens)
}

impl Engine for Moonshine {
    type Input = Vec<f32>;
    type Output = String;

    fn run(
        &mut self,
        batch: Vec<Vec<f32>>,
        _abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<String, SenseError>> {
        batch.iter().map(|samples| self.text(samples)).collect()
    }
}
