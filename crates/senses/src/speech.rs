//! English speech synthesis with the voice of hibari.
//!
//! ```text
//! sentence → spelled out → words with tags → phonemes → network → vocoder → samples
//! ```

mod hibari;
mod lexicon;
mod numbers;
mod phonemes;
mod spelled_out;
mod tagger;
mod unknown_words;
mod vocoder;

use std::sync::Arc;

use quintet_kernel::port::{Audio, BoxFuture, SenseError, SpeechSynthesizer};

use crate::Settings;
use crate::weights;
use crate::worker::{Limits, Worker};
use hibari::Hibari;

#[cfg(test)]
pub(crate) use hibari::FILES;

/// The name of the sense, of its weights and of its option.
const SENSE: &str = "speech";
const QUEUE_LIMIT: usize = 64;
/// Maximum length of a sentence, in bytes.
const SENTENCE_LIMIT: usize = 2_000;

/// Synthesizes English sentences on this machine.
#[derive(Debug)]
pub struct LocalSpeaker {
    settings: Arc<Settings>,
    worker: Worker<Hibari>,
}

impl LocalSpeaker {
    /// Nothing is loaded before the first request.
    pub fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let limits = Limits { queue: QUEUE_LIMIT, batch: 1, idle: settings.idle };
        let load = {
            let settings = Arc::clone(&settings);
            move || Hibari::load(&settings)
        };
        Self { settings, worker: Worker::new(SENSE, limits, load) }
    }

    /// True while the model is in memory.
    pub fn is_loaded(&self) -> bool {
        self.worker.is_running()
    }
}

impl SpeechSynthesizer for LocalSpeaker {
    fn ready(&self) -> Result<(), SenseError> {
        weights::check(SENSE, &self.settings)
    }

    fn speak(&self, sentence: String) -> BoxFuture<'_, Result<Audio, SenseError>> {
        Box::pin(async move {
            if sentence.len() > SENTENCE_LIMIT {
                return Err(SenseError::BadInput(format!(
                    "a sentence of {} bytes is too long to be spoken: the limit is {SENTENCE_LIMIT}",
                    sentence.len()
                )));
            }
            self.ready()?;
            Ok(self.worker.submit(sentence, 1).await?.output)
        })
    }
}
