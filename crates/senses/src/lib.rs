//! Perception on this machine: embeddings, OCR, transcription, speech and a wake word; and vision through
//! a provider's model.
//!
//! [`LocalEmbedder`], [`LocalOcr`], [`LocalRecognizer`] and [`LocalSpeaker`] run small models with `rten`,
//! each on a thread of its own, which the first request starts and which ends after a time without requests.
//! [`StreamTranscriber`] cuts audio into utterances, [`WakeWord`] detects one phrase, [`ModelVision`] uses a
//! provider's model and [`OcrVision`] the text on a picture. [`weights`] is the table of their files.
//!
//! ```text
//! request → bounded queue → worker thread: load on first use → batch → Engine::run → answer
//!              └── full: SenseError::Busy              └── idle: model unloaded
//! ```

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
pub use transcription::{
    LocalRecognizer, Protocol as TranscriptionProtocol, RemoteTranscriber,
    Service as TranscriptionService, StreamTranscriber,
};
pub use vision::{ModelVision, OcrVision};
pub use wake_word::WakeWord;

/// Settings of the models.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of the weights.
    pub models_dir: PathBuf,
    /// Time without requests after which a model is unloaded.
    pub idle: Duration,
    /// Threads that compute for one sense.
    pub threads: usize,
}
