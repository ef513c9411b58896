//! Perception: text as vectors, text in pictures and speech, computed on this machine, and models of
//! providers that look at pictures.
//!
//! [`LocalEmbedder`], [`LocalOcr`], [`LocalRecognizer`] and [`LocalSpeaker`] run small models with `rten`,
//! each on a thread of its own that is started by the first request and ended when nothing was requested
//! for a while. [`StreamTranscriber`] cuts audio into utterances, [`WakeWord`] waits for one phrase.
//! [`weights`] is the table of their files.

mod embedder;
mod graph;
mod network;
mod ocr;
mod off;
mod picture;
mod resample;
mod speech;
mod transcription;
mod vad;
mod vision;
mod wake_word;
pub mod weights;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub use embedder::LocalEmbedder;
pub use ocr::LocalOcr;
pub use off::Off;
pub use speech::LocalSpeaker;
pub use transcription::{LocalRecognizer, StreamTranscriber};
pub use vision::{ModelVision, OcrVision};
pub use wake_word::WakeWord;

/// How models are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of the weights.
    pub models_dir: PathBuf,
    /// A model that nothing was requested of for so long is unloaded.
    pub idle: Duration,
    /// Threads that compute for one sense.
    pub threads: usize,
}
