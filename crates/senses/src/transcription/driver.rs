//! Processes the audio of one stream.
//!
//! Audio is never dropped: while a final transcript is computed, new audio and its sender wait. A partial
//! transcript is computed in parallel and abandoned if the utterance ends first.

use std::sync::Arc;

use quintet_kernel::port::{
    Audio, BoxFuture, RECOGNITION_SAMPLE_RATE, Recognizer, SenseError, Transcript,
};
use tokio::sync::mpsc::{Receiver, Sender};

use super::segmenter::Segmenter;
use crate::resample::Resampler;
use crate::vad::{Activity, Vad, VadState, WINDOW_SAMPLES, Windows};
use crate::worker::Worker;

/// Samples of an utterance between two partial transcripts: one second.
const PARTIAL_INTERVAL: usize = RECOGNITION_SAMPLE_RATE as usize;
/// Samples with a lower peak are silence, which is not processed: 16 steps of 16 bits.
const SILENCE_THRESHOLD: f32 = 16.0 / 32_768.0;

/// Input of a stream.
pub(super) enum Input {
    Audio(Audio),
    Language(String),
    StartOver,
    Finish,
}

/// The reason why a driver ends.
enum End {
    /// The client that reads transcripts has disconnected.
    Abandoned,
    Failed(SenseError),
}

impl From<SenseError> for End {
    fn from(error: SenseError) -> Self {
        Self::Failed(error)
    }
}

type Partial = BoxFuture<'static, Result<String, SenseError>>;

/// The state of a stream.
pub(super) struct Driver {
    vad: Arc<Worker<Vad>>,
    recognizer: Arc<dyn Recognizer>,
    output: Sender<Result<Transcript, SenseError>>,
    language: Option<String>,
    resampler: Option<Resampler>,
    /// Samples that do not fill a window yet.
    rest: Vec<f32>,
    state: VadState,
    segmenter: Segmenter,
    /// A partial transcript that is being computed.
    partial: Option<Partial>,
    /// The length of the utterance at the last partial transcript.
    partial_at: usize,
    /// The last partial transcript of the utterance that was sent.
    sent: String,
}

impl Driver {
    pub(super) fn new(
        vad: Arc<Worker<Vad>>,
        recognizer: Arc<dyn Recognizer>,
        output: Sender<Result<Transcript, SenseError>>,
    ) -> Self {
        Self {
            vad,
            recognizer,
            output,
            language: None,
            resampler: None,
            rest: Vec::new(),
            state: VadState::default(),
            segmenter: Segmenter::default(),
            partial: None,
            partial_at: 0,
            sent: String::new(),
        }
    }

    pub(super) async fn run(mut self, mut inputs: Receiver<Input>) {
        loop {
            let step = tokio::select! {
                input = inputs.recv() => match input {
                    Some(Input::Finish) | None => {
                        let finished = self.finish().await;
                        return self.send_error(finished).await;
                    }
                    Some(input) => self.take(input).await,
                },
                text = partial(&mut self.partial) => self.publish_partial(text).await,
            };
            if step.is_err() {
                return self.send_error(step).await;
            }
        }
    }

    async fn send_error(&mut self, end: Result<(), End>) {
        if let Err(End::Failed(error)) = end {
            // If the stream was dropped, no error is needed.
            let _ = self.output.send(Err(error)).await;
        }
    }

    async fn take(&mut self, input: Input) -> Result<(), End> {
        match input {
            Input::Audio(audio) => self.process(audio).await,
            Input::Language(language) => {
                self.language = Some(language).filter(|language| !language.is_empty());
                Ok(())
            }
            Input::StartOver => {
                self.segmenter = Segmenter::default();
                self.rest.clear();
                self.resampler = None;
                self.state = VadState::default();
                self.forget_partials();
                Ok(())
            }
            Input::Finish => Ok(()),
        }
    }

    async fn process(&mut self, audio: Audio) -> Result<(), End> {
        let mut samples = Vec::new();
        if self.resampler.as_ref().is_none_or(|resampler| resampler.from() != audio.rate) {
            let next = Resampler::new(audio.rate, RECOGNITION_SAMPLE_RATE)?;
            let last = self.resampler.replace(next);
            samples.extend(last.map(|mut last| last.finish()).unwrap_or_default());
        }
        let input: Vec<f32> = audio.samples.iter().map(|x| f32::from(*x) / 32_768.0).collect();
        if let Some(resampler) = &mut self.resampler {
            samples.extend(resampler.push(&input));
        }
        self.rest.extend(samples);
        let whole = self.rest.len() / WINDOW_SAMPLES * WINDOW_SAMPLES;
        let windows: Vec<f32> = self.rest.drain(..whole).collect();
        self.cut(windows).await?;
        self.request_partial();
        Ok(())
    }

    /// Splits whole windows into utterances and transcribes those that end.
    async fn cut(&mut self, samples: Vec<f32>) -> Result<(), End> {
        if samples.is_empty() {
            return Ok(());
        }
        let Activity { windows, probabilities } = self.activity(samples).await?;
        self.state = windows.state;
        for (window, probability) in windows.samples.chunks_exact(WINDOW_SAMPLES).zip(probabilities)
        {
            if let Some(utterance) = self.segmenter.push(window, probability) {
                self.transcribe(utterance).await?;
            }
        }
        Ok(())
    }

    async fn activity(&mut self, samples: Vec<f32>) -> Result<Activity, End> {
        let state = std::mem::take(&mut self.state);
        let quiet = samples.iter().all(|sample| sample.abs() < SILENCE_THRESHOLD);
        if quiet && self.segmenter.current().is_none() {
            let probabilities = vec![0.0; samples.len() / WINDOW_SAMPLES];
            return Ok(Activity { windows: Windows { state, samples }, probabilities });
        }
        Ok(self.vad.submit(Windows { state, samples }, 1).await?.output)
    }

    /// Requests a transcript of the utterance so far, if one is due and none is being computed.
    fn request_partial(&mut self) {
        if self.partial.is_some() || !self.recognizer.is_repeatable() {
            return;
        }
        let Some(samples) = self.segmenter.current() else { return };
        if samples.len() < self.partial_at + PARTIAL_INTERVAL {
            return;
        }
        self.partial_at = samples.len();
        let (samples, language) = (samples.to_vec(), self.language.clone());
        let recognizer = Arc::clone(&self.recognizer);
        let text = async move { recognizer.recognize(samples, language).await };
        self.partial = Some(Box::pin(text));
    }

    async fn publish_partial(&mut self, text: Result<String, SenseError>) -> Result<(), End> {
        match text {
            Ok(text) if text.is_empty() || text == self.sent => {}
            Ok(text) => {
                self.sent.clone_from(&text);
                self.send(Transcript::Partial(text)).await?;
            }
            Err(SenseError::Busy) => {}
            Err(error) => return Err(error.into()),
        }
        // The utterance may have grown meanwhile.
        self.request_partial();
        Ok(())
    }

    async fn transcribe(&mut self, utterance: Vec<f32>) -> Result<(), End> {
        let was_shown = !self.sent.is_empty();
        self.forget_partials();
        let text = self.recognizer.recognize(utterance, self.language.clone()).await?;
        if text.is_empty() && !was_shown {
            return Ok(());
        }
        self.send(Transcript::Final(text)).await?;
        self.send(Transcript::UtteranceEnd).await
    }

    fn forget_partials(&mut self) {
        self.partial = None;
        self.partial_at = 0;
        self.sent.clear();
    }

    async fn finish(&mut self) -> Result<(), End> {
        if let Some(mut resampler) = self.resampler.take() {
            self.rest.extend(resampler.finish());
        }
        let missing = self.rest.len().next_multiple_of(WINDOW_SAMPLES) - self.rest.len();
        self.rest.extend(std::iter::repeat_n(0.0, missing));
        let samples = std::mem::take(&mut self.rest);
        self.cut(samples).await?;
        match self.segmenter.finish() {
            Some(utterance) => self.transcribe(utterance).await,
            None => Ok(()),
        }
    }

    async fn send(&mut self, transcript: Transcript) -> Result<(), End> {
        self.output.send(Ok(transcript)).await.map_err(|_| End::Abandoned)
    }
}

/// Resolves with the partial transcript; never if none is being computed.
async fn partial(partial: &mut Option<Partial>) -> Result<String, SenseError> {
    match partial {
        Some(running) => {
            let text = running.await;
            *partial = None;
            text
        }
        None => std::future::pending().await,
    }
}
