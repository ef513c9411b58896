//! Speech: audio as text and text as audio.
//!
//! A [`Recognizer`] transcribes one utterance, a [`Transcriber`] cuts a stream of audio into utterances
//! and transcribes them, a [`SpeechSynthesizer`] reads a sentence aloud.

use super::BoxFuture;
use super::senses::SenseError;

/// Samples per second of the audio that recognizers work on.
pub const RECOGNITION_SAMPLE_RATE: u32 = 16_000;

/// Audio with one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audio {
    /// The samples.
    pub samples: Vec<i16>,
    /// Samples per second.
    pub rate: u32,
}

/// Transcribes one utterance.
pub trait Recognizer: Send + Sync {
    /// `Ok` if `recognize` can work now, without loading anything.
    fn ready(&self) -> Result<(), SenseError>;
    /// True if a growing utterance may be recognized again and again, so that partial transcripts are
    /// cheap enough.
    fn is_repeatable(&self) -> bool;
    /// The text of an utterance at [`RECOGNITION_SAMPLE_RATE`]; empty if there is no speech in it. `language` is an
    /// ISO 639-1 code, if one was set. Dropping the future cancels work that has not begun.
    fn recognize(
        &self,
        samples: Vec<f32>,
        language: Option<String>,
    ) -> BoxFuture<'_, Result<String, SenseError>>;
}

/// The transcription of a stream, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transcript {
    /// The whole text of the utterance so far. Later ones may replace any of its words.
    Partial(String),
    /// The final text of the utterance.
    Final(String),
    /// The utterance ended; follows its final text.
    UtteranceEnd,
}

/// Transcribes streams of audio.
pub trait Transcriber: Send + Sync {
    /// `Ok` if a stream can be opened now.
    fn ready(&self) -> Result<(), SenseError>;
    /// Begins a stream. Fails if transcription is off, its weights are missing or too many streams are
    /// open. Dropping the stream ends it.
    fn open(&self) -> Result<Box<dyn TranscriptionStream>, SenseError>;
}

/// One stream of audio. Its methods may be called concurrently.
pub trait TranscriptionStream: Send + Sync {
    /// Adds audio. Waits while much audio is still to be processed, so that none has to be dropped.
    /// Fails with `BadInput` if the sample rate is not supported; the stream stays usable.
    fn push(&self, audio: Audio) -> BoxFuture<'_, Result<(), SenseError>>;
    /// Sets the language of the audio that follows.
    fn set_language(&self, language: String) -> BoxFuture<'_, ()>;
    /// Discards the audio of the current utterance.
    fn start_over(&self) -> BoxFuture<'_, ()>;
    /// Ends the current utterance; no audio follows.
    fn finish(&self) -> BoxFuture<'_, ()>;
    /// The next transcript; `None` after [`TranscriptionStream::finish`] once all audio is
    /// processed. No transcript follows an error. Dropping the future loses nothing.
    fn next(&self) -> BoxFuture<'_, Option<Result<Transcript, SenseError>>>;
}

/// Reads text aloud.
pub trait SpeechSynthesizer: Send + Sync {
    /// `Ok` if `speak` can work now, without loading anything.
    fn ready(&self) -> Result<(), SenseError>;
    /// The audio of a sentence; empty if nothing in it can be pronounced. Dropping the future cancels
    /// work that has not begun.
    fn speak(&self, sentence: String) -> BoxFuture<'_, Result<Audio, SenseError>>;
}
