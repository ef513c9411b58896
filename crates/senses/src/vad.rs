//! Voice activity detection: finds speech in a stream of audio (Silero VAD).

use std::sync::Arc;

use quintet_kernel::port::SenseError;
use rten::{ThreadPool, Value};
use rten_tensor::Tensor;

use crate::Settings;
use crate::graph::{Graph, numbers};
use crate::worker::{Engine, failed};

/// Samples of a window, for each of which there is a probability: 32 ms.
pub(crate) const WINDOW_SAMPLES: usize = 512;
/// The file in the directory of models.
pub(crate) const FILE: &str = "silero-vad/vad.onnx";
/// Samples before a window that are part of its input.
const CONTEXT_SAMPLES: usize = 64;
const SAMPLE_RATE: i32 = 16_000;

/// The model in memory.
pub(crate) struct Vad(Graph);

/// The model's state of one stream.
pub(crate) struct VadState {
    memory: Value,
    context: Vec<f32>,
}

impl Default for VadState {
    fn default() -> Self {
        Self {
            memory: Tensor::<f32>::zeros(&[2, 1, 128]).into(),
            context: vec![0.0; CONTEXT_SAMPLES],
        }
    }
}

/// Windows of one stream.
pub(crate) struct Windows {
    pub(crate) state: VadState,
    /// Whole windows.
    pub(crate) samples: Vec<f32>,
}

/// The windows, each with its probability of speech.
pub(crate) struct Activity {
    pub(crate) windows: Windows,
    pub(crate) probabilities: Vec<f32>,
}

impl Vad {
    pub(crate) fn load(settings: &Settings) -> Result<Self, SenseError> {
        // The network is too small for several threads.
        let threads = Arc::new(ThreadPool::with_num_threads(1));
        Ok(Self(Graph::load(&settings.models_dir.join(FILE), &threads)?))
    }

    fn activity(&self, mut windows: Windows) -> Result<Activity, SenseError> {
        let mut probabilities = Vec::with_capacity(windows.samples.len() / WINDOW_SAMPLES);
        for window in windows.samples.chunks_exact(WINDOW_SAMPLES) {
            let state = &mut windows.state;
            let input = [&state.context[..], window].concat();
            let input = Tensor::from_data(&[1, CONTEXT_SAMPLES + WINDOW_SAMPLES], input);
            let rate = Tensor::from_scalar(SAMPLE_RATE);
            let inputs = vec![
                ("input", input.into()),
                ("state", (&state.memory).into()),
                ("sr", rate.into()),
            ];
            let outputs: [Value; 2] = self
                .0
                .run(inputs, &["output", "stateN"])?
                .try_into()
                .map_err(|_| failed("the model gave no state"))?;
            let [probability, memory] = outputs;
            probabilities.push(numbers(probability)?.first().copied().unwrap_or(0.0));
            state.memory = memory;
            state.context.copy_from_slice(&window[WINDOW_SAMPLES - CONTEXT_SAMPLES..]);
        }
        Ok(Activity { windows, probabilities })
    }
}

impl Engine for Vad {
    type Input = Windows;
    type Output = Activity;

    fn run(
        &mut self,
        batch: Vec<Windows>,
        _abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<Activity, SenseError>> {
        batch.into_iter().map(|windows| self.activity(windows)).collect()
    }
}
