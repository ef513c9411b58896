//! Senses that the configuration turns off.

use std::future::ready;

use quintet_kernel::port::{
    Audio, BoxFuture, Embedder, EmbeddingSpace, Embeddings, Ocr, RecognizedText, SenseError,
    SpeechSynthesizer, Transcriber, TranscriptionStream,
};

/// A sense that is off: every request fails with [`SenseError::Off`].
#[derive(Clone, Copy, Debug)]
pub struct Off(
    /// The option below `[senses]` that would turn it on.
    pub &'static str,
);

impl Off {
    fn error(self) -> SenseError {
        SenseError::Off(self.0)
    }
}

impl Embedder for Off {
    fn space(&self) -> EmbeddingSpace {
        EmbeddingSpace { provider: "off".into(), model: "off".into(), dimensions: 0 }
    }

    fn ready(&self) -> Result<(), SenseError> {
        Err(self.error())
    }

    fn embed(&self, _: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>> {
        Box::pin(ready(Err(self.error())))
    }
}

impl Ocr for Off {
    fn ready(&self) -> Result<(), SenseError> {
        Err(self.error())
    }

    fn read(&self, _: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>> {
        Box::pin(ready(Err(self.error())))
    }
}

impl Transcriber for Off {
    fn ready(&self) -> Result<(), SenseError> {
        Err(self.error())
    }

    fn open(&self) -> Result<Box<dyn TranscriptionStream>, SenseError> {
        Err(self.error())
    }
}

impl SpeechSynthesizer for Off {
    fn ready(&self) -> Result<(), SenseError> {
        Err(self.error())
    }

    fn speak(&self, _: String) -> BoxFuture<'_, Result<Audio, SenseError>> {
        Box::pin(ready(Err(self.error())))
    }
}
