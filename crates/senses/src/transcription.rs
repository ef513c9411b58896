//! Transcription: a stream of audio is split into utterances, which are transcribed.
//!
//! ```text
//! audio → resample → voice activity → utterances → recognizer → partial and final transcripts
//! ```
//!
//! The recognizer is a model on this machine ([`LocalRecognizer`]) or a provider's. A service that
//! accepts streams does everything itself ([`RemoteTranscriber`]).

mod driver;
mod moonshine;
mod remote;
mod segmenter;

use std::sync::Arc;

use quintet_kernel::port::{
    Audio, BoxFuture, Recognizer, SenseError, Transcriber, Transcript, TranscriptionStream,
};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::resample::SAMPLE_RATES;
use crate::vad::Vad;
use crate::worker::{Limits, Worker};
use crate::{Settings, weights};
use driver::{Driver, Input};
use moonshine::Moonshine;

pub use remote::{Protocol, RemoteTranscriber, Service};

#[cfg(test)]
pub(crate) use moonshine::FILES;

/// The name of the sense, of its weights and of its option.
const SENSE: &str = "transcription";
/// The weights that detect utterances.
const VOICE_ACTIVITY: &str = "voice-activity";
/// Maximum number of open streams.
const STREAM_LIMIT: usize = 256;
/// Pieces of audio of a stream that wait to be processed.
const INPUT_CAPACITY: usize = 16;
/// Maximum number of samples of one piece; larger ones are split.
const PIECE_LIMIT: usize = 16_000;
/// Transcripts that wait to be read.
const OUTPUT_CAPACITY: usize = 32;
/// A stream has at most one running request, so requests never find the queue full.
const QUEUE_LIMIT: usize = 2 * STREAM_LIMIT;

/// Transcribes utterances on this machine, in English.
#[derive(Debug)]
pub struct LocalRecognizer {
    settings: Arc<Settings>,
    worker: Worker<Moonshine>,
}

impl LocalRecognizer {
    /// Nothing is loaded before the first request.
    pub fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let limits = Limits { queue: QUEUE_LIMIT, batch: 1, idle: settings.idle };
        let load = {
            let settings = Arc::clone(&settings);
            move || Moonshine::load(&settings)
        };
        Self { settings, worker: Worker::new(SENSE, limits, load) }
    }

    /// True while the model is in memory.
    pub fn is_loaded(&self) -> bool {
        self.worker.is_running()
    }
}

impl Recognizer for LocalRecognizer {
    fn ready(&self) -> Result<(), SenseError> {
        weights::check(SENSE, &self.settings)
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn recognize(
        &self,
        samples: Vec<f32>,
        _: Option<String>,
    ) -> BoxFuture<'_, Result<String, SenseError>> {
        Box::pin(async move {
            self.ready()?;
            Ok(self.worker.submit(samples, 1).await?.output)
        })
    }
}

/// Splits streams of audio into utterances on this machine; a recognizer transcribes them.
pub struct StreamTranscriber {
    settings: Arc<Settings>,
    vad: Arc<Worker<Vad>>,
    recognizer: Arc<dyn Recognizer>,
    streams: Arc<Semaphore>,
}

impl std::fmt::Debug for StreamTranscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamTranscriber").finish_non_exhaustive()
    }
}

impl StreamTranscriber {
    /// Nothing is loaded before the first request.
    pub fn new(settings: Settings, recognizer: Arc<dyn Recognizer>) -> Self {
        let settings = Arc::new(settings);
        let limits = Limits { queue: QUEUE_LIMIT, batch: 1, idle: settings.idle };
        let load = {
            let settings = Arc::clone(&settings);
            move || Vad::load(&settings)
        };
        let vad = Arc::new(Worker::new(VOICE_ACTIVITY, limits, load));
        Self { settings, vad, recognizer, streams: Arc::new(Semaphore::new(STREAM_LIMIT)) }
    }
}

impl Transcriber for StreamTranscriber {
    fn ready(&self) -> Result<(), SenseError> {
        self.recognizer.ready()?;
        weights::check(VOICE_ACTIVITY, &self.settings)
    }

    fn open(&self) -> Result<Box<dyn TranscriptionStream>, SenseError> {
        self.ready()?;
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| SenseError::Busy)?;
        let (input, inputs) = channel(INPUT_CAPACITY);
        let (output, outputs) = channel(OUTPUT_CAPACITY);
        let driver = Driver::new(Arc::clone(&self.vad), Arc::clone(&self.recognizer), output);
        let mut tasks = JoinSet::new();
        tasks.spawn(driver.run(inputs));
        let outputs = Mutex::new(outputs);
        Ok(Box::new(Stream { input, outputs, _tasks: tasks, _permit: permit }))
    }
}

/// The handle of a stream. Dropping it ends the stream's task.
struct Stream {
    input: Sender<Input>,
    outputs: Mutex<Receiver<Result<Transcript, SenseError>>>,
    _tasks: JoinSet<()>,
    _permit: OwnedSemaphorePermit,
}

impl Stream {
    async fn send(&self, input: Input) {
        // The driver ends after an error, which `next` returns.
        let _ = self.input.send(input).await;
    }
}

impl TranscriptionStream for Stream {
    fn push(&self, audio: Audio) -> BoxFuture<'_, Result<(), SenseError>> {
        Box::pin(async move {
            let Audio { samples, rate } = audio;
            if !SAMPLE_RATES.contains(&rate) {
                return Err(SenseError::BadInput(format!(
                    "a sample rate of {rate} is not supported"
                )));
            }
            for piece in samples.chunks(PIECE_LIMIT) {
                self.send(Input::Audio(Audio { samples: piece.to_vec(), rate })).await;
            }
            Ok(())
        })
    }

    fn set_language(&self, language: String) -> BoxFuture<'_, ()> {
        Box::pin(self.send(Input::Language(language)))
    }

    fn start_over(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.send(Input::StartOver))
    }

    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.send(Input::Finish))
    }

    fn next(&self) -> BoxFuture<'_, Option<Result<Transcript, SenseError>>> {
        Box::pin(async move { self.outputs.lock().await.recv().await })
    }
}
