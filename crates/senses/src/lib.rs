//! Perception: text as vectors and text in pictures, computed on this machine, and models of providers
//! that look at pictures.
//!
//! [`LocalEmbedder`] and [`LocalOcr`] run small models with `rten`, each on a thread of its own that
//! is started by the first request and ended when nothing was requested for a while. [`weights`] is
//! the table of their files.

mod embedder;
mod network;
mod ocr;
mod off;
mod picture;
mod vision;
pub mod weights;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub use embedder::LocalEmbedder;
pub use ocr::LocalOcr;
pub use off::Off;
pub use vision::{ModelVision, OcrVision};

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
