//! Detects the wake word "hey Quintet" in a stream of audio.
//!
//! Each 80 ms of audio are converted to a mel spectrogram, then to an embedding of 96 numbers; a
//! small head classifies the last 16 embeddings. The networks below the head are openWakeWord's;
//! the head was trained on synthesized speech by `data/wake_word.py`.

use std::collections::VecDeque;
use std::sync::Arc;

use quintet_kernel::port::{Audio, RECOGNITION_SAMPLE_RATE, SenseError};
use rten::{ThreadPool, Value};
use rten_tensor::Tensor;

use crate::Settings;
use crate::graph::{Graph, numbers};
use crate::resample::Resampler;
use crate::weights;
use crate::worker::failed;

/// The name of the weights.
const SENSE: &str = "wake-word";
/// The files in the directory of models: spectrogram and embedding.
pub(crate) const FILES: &[&str] =
    &["wake-word/melspectrogram.onnx", "wake-word/embedding_model.onnx"];
/// Samples of a chunk: 80 ms.
const CHUNK_SAMPLES: usize = 1280;
/// Samples before a chunk that its spectrogram needs.
const LEAD_SAMPLES: usize = 480;
/// Numbers of a frame of the spectrogram.
const BANDS_PER_FRAME: usize = 32;
/// Frames per embedding.
const FRAMES_PER_EMBEDDING: usize = 76;
/// Numbers of an embedding.
const EMBEDDING_SIZE: usize = 96;
/// Embeddings per score.
const EMBEDDINGS_PER_SCORE: usize = 16;
const HEAD_INPUTS: usize = EMBEDDING_SIZE * EMBEDDINGS_PER_SCORE;
const HEAD_UNITS: usize = 32;
const DETECTION_THRESHOLD: f32 = 0.5;
/// Chunks at the beginning, before there is enough audio for a score.
const WARM_UP_CHUNKS: usize = 6;
/// Chunks after a detection without another one: 2 s.
const PAUSE_CHUNKS: usize = 25;
/// Weights of both layers, as `data/wake_word.py` writes them.
static HEAD: &[u8] = include_bytes!("../data/wake-word.bin");

/// Detects the wake word. Computing blocks: 40 ms for a second of audio.
pub struct WakeWord {
    spectrogram: Graph,
    embedding: Graph,
    head: Head,
    resampler: Option<Resampler>,
    /// Samples that do not fill a chunk yet, after those that the next chunk needs.
    samples: Vec<f32>,
    frames: VecDeque<[f32; BANDS_PER_FRAME]>,
    embeddings: VecDeque<Vec<f32>>,
    chunks: usize,
    /// Chunks until the next possible detection.
    pause: usize,
}

impl std::fmt::Debug for WakeWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WakeWord").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

impl WakeWord {
    /// Loads the networks. Fails if their files are missing.
    pub fn load(settings: &Settings) -> Result<Self, SenseError> {
        weights::check(SENSE, settings)?;
        let threads = Arc::new(ThreadPool::with_num_threads(1));
        let graph = |file: &str| Graph::load(&settings.models_dir.join(file), &threads);
        Ok(Self {
            spectrogram: graph(FILES[0])?,
            embedding: graph(FILES[1])?,
            head: Head::read(HEAD)?,
            resampler: None,
            samples: vec![0.0; LEAD_SAMPLES],
            frames: vec![[1.0; BANDS_PER_FRAME]; FRAMES_PER_EMBEDDING].into(),
            embeddings: vec![vec![0.0; EMBEDDING_SIZE]; EMBEDDINGS_PER_SCORE].into(),
            chunks: 0,
            pause: 0,
        })
    }

    /// Adds audio. Returns the number of its samples up to the end of the wake word, if it was detected; the
    /// rest is not processed then.
    pub fn push(&mut self, audio: &Audio) -> Result<Option<usize>, SenseError> {
        if self.resampler.as_ref().is_none_or(|resampler| resampler.from() != audio.rate) {
            self.resampler = Some(Resampler::new(audio.rate, RECOGNITION_SAMPLE_RATE)?);
        }
        let step = (audio.rate as usize / 100).max(1);
        for (at, piece) in audio.samples.chunks(step).enumerate() {
            let piece: Vec<f32> = piece.iter().map(|x| f32::from(*x)).collect();
            let resampler = self.resampler.as_mut();
            self.samples.extend(resampler.map(|it| it.push(&piece)).unwrap_or_default());
            while self.samples.len() >= LEAD_SAMPLES + CHUNK_SAMPLES {
                if self.chunk()? {
                    return Ok(Some(((at + 1) * step).min(audio.samples.len())));
                }
            }
        }
        Ok(None)
    }

    /// Removes a chunk from the samples; true if the wake word ends in it.
    fn chunk(&mut self) -> Result<bool, SenseError> {
        let input = self.samples[..LEAD_SAMPLES + CHUNK_SAMPLES].to_vec();
        self.samples.drain(..CHUNK_SAMPLES);
        self.chunks += 1;
        let score = self.score(input)?;
        self.pause = self.pause.saturating_sub(1);
        let is_said =
            score > DETECTION_THRESHOLD && self.pause == 0 && self.chunks > WARM_UP_CHUNKS;
        if is_said {
            self.pause = PAUSE_CHUNKS;
        }
        Ok(is_said)
    }

    fn score(&mut self, input: Vec<f32>) -> Result<f32, SenseError> {
        let input = Tensor::from_data(&[1, input.len()], input);
        let mels = run(&self.spectrogram, ("input", input.into()), "output")?;
        for mel in mels.chunks_exact(BANDS_PER_FRAME) {
            self.frames.push_back(std::array::from_fn(|band| mel[band] / 10.0 + 2.0));
        }
        self.frames.drain(..self.frames.len() - FRAMES_PER_EMBEDDING);
        let frames: Vec<f32> = self.frames.iter().flatten().copied().collect();
        let frames = Tensor::from_data(&[1, FRAMES_PER_EMBEDDING, BANDS_PER_FRAME, 1], frames);
        let embedding = run(&self.embedding, ("input_1", frames.into()), "conv2d_19")?;
        if embedding.len() != EMBEDDING_SIZE {
            return Err(failed("the wake word's model gave an embedding of another size"));
        }
        self.embeddings.pop_front();
        self.embeddings.push_back(embedding);
        Ok(self.head.score(self.embeddings.iter().flatten()))
    }
}

fn run(graph: &Graph, input: (&str, Value), output: &str) -> Result<Vec<f32>, SenseError> {
    let (name, value) = input;
    let output = graph.run(vec![(name, value.into())], &[output])?.pop();
    numbers(output.ok_or_else(|| failed("the wake word's model gave no output"))?)
}

/// Two layers of weights.
struct Head {
    /// A row of units for each input.
    first: Vec<f32>,
    bias: Vec<f32>,
    second: Vec<f32>,
    offset: f32,
}

impl Head {
    fn read(bytes: &[u8]) -> Result<Self, SenseError> {
        let numbers = bytes.chunks_exact(4).map(|n| f32::from_le_bytes([n[0], n[1], n[2], n[3]]));
        let mut numbers = numbers.collect::<Vec<f32>>().into_iter();
        let mut take = |count: usize| numbers.by_ref().take(count).collect::<Vec<f32>>();
        let (first, bias, second) =
            (take(HEAD_INPUTS * HEAD_UNITS), take(HEAD_UNITS), take(HEAD_UNITS));
        match take(2)[..] {
            [offset] => Ok(Self { first, bias, second, offset }),
            _ => Err(failed("the wake word's weights are of another size")),
        }
    }

    fn score<'a>(&self, inputs: impl Iterator<Item = &'a f32>) -> f32 {
        let mut units = self.bias.clone();
        for (input, weights) in inputs.zip(self.first.chunks_exact(HEAD_UNITS)) {
            for (unit, weight) in units.iter_mut().zip(weights) {
                *unit += input * weight;
            }
        }
        let sum: f32 =
            units.iter().zip(&self.second).map(|(unit, weight)| unit.max(0.0) * weight).sum();
        1.0 / (1.0 + (-(sum + self.offset)).exp())
    }
}
