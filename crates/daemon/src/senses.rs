//! Builds the senses, and `quintet ocr` and `quintet embed`, which use them without a daemon.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quintet_kernel::port::{Embedder, Ocr, RecognizedText, SenseError, TextBox};
use quintet_providers::HttpEmbedder;
use quintet_senses::{LocalEmbedder, LocalOcr, Off};
use serde_json::{Value, json};

use crate::cli::Flags;
use crate::options::{self, EmbeddingSource, Options};

/// Maximum length of a picture file, in bytes.
const FILE_LIMIT: u64 = 100 << 20;

/// The senses of the options. Nothing is loaded before it is used.
#[derive(Clone)]
pub(crate) struct Senses {
    pub(crate) embedder: Arc<dyn Embedder>,
    pub(crate) ocr: Arc<dyn Ocr>,
}

/// Builds the senses.
pub(crate) fn build(options: &Options) -> Senses {
    let senses = &options.senses;
    let embedder: Arc<dyn Embedder> = match &senses.embeddings {
        EmbeddingSource::Off => Arc::new(Off("embeddings")),
        EmbeddingSource::Local => Arc::new(LocalEmbedder::new(senses.settings.clone())),
        EmbeddingSource::Provider { config, model, dimensions, shorten } => {
            Arc::new(HttpEmbedder::provider(config, model, *dimensions, *shorten))
        }
        EmbeddingSource::Service { url, key } => Arc::new(HttpEmbedder::service(url, key.clone())),
    };
    let ocr: Arc<dyn Ocr> = if senses.ocr {
        Arc::new(LocalOcr::new(senses.settings.clone()))
    } else {
        Arc::new(Off("ocr"))
    };
    Senses { embedder, ocr }
}

impl Senses {
    /// The embedder, unless the configuration turns it off.
    pub(crate) fn embedder_if_on(&self) -> Option<Arc<dyn Embedder>> {
        is_on(self.embedder.ready()).then(|| Arc::clone(&self.embedder))
    }

    /// The OCR, unless the configuration turns it off.
    pub(crate) fn ocr_if_on(&self) -> Option<Arc<dyn Ocr>> {
        is_on(self.ocr.ready()).then(|| Arc::clone(&self.ocr))
    }

    /// Logs which senses cannot be used yet.
    pub(crate) fn log_missing(&self) {
        for ready in [self.embedder.ready(), self.ocr.ready()] {
            if let Err(missing @ SenseError::MissingWeights(sense)) = ready {
                tracing::info!(sense, "{missing}");
            }
        }
    }
}

/// True unless the configuration turns a sense off.
fn is_on(ready: Result<(), SenseError>) -> bool {
    !matches!(ready, Err(SenseError::Off(_)))
}

/// `quintet ocr`: prints the text in a picture, line by line or as JSON.
pub(crate) fn ocr(flags: &Flags, file: &Path, as_json: bool) -> Result<()> {
    let senses = build(&options::read(flags)?);
    senses.ocr.ready()?;
    let image = read(file).with_context(|| format!("{}", file.display()))?;
    let text = run(senses.ocr.read(image))?.with_context(|| format!("{}", file.display()))?;
    let mut stdout = std::io::stdout().lock();
    if as_json {
        writeln!(stdout, "{}", json(&text))?
    } else {
        text.lines.iter().try_for_each(|line| writeln!(stdout, "{}", line.text))?
    }
    Ok(())
}

/// `quintet embed`: prints a line of JSON for each text, the numbers of its vector.
pub(crate) fn embed(flags: &Flags, texts: Vec<String>) -> Result<()> {
    let senses = build(&options::read(flags)?);
    let vectors = run(senses.embedder.embed(texts))??.vectors;
    let mut stdout = std::io::stdout().lock();
    for vector in vectors {
        writeln!(stdout, "{}", json!(vector))?;
    }
    Ok(())
}

fn run<T>(work: impl Future<Output = T>) -> Result<T> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(threads.block_on(work))
}

/// The content of a file, or of standard input if the name is `-`.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    }
    anyhow::ensure!(bytes.len() as u64 <= FILE_LIMIT, "the file is larger than 100 MB");
    Ok(bytes)
}

fn json(text: &RecognizedText) -> Value {
    let line = |line: &TextBox| {
        json!({
            "text": line.text, "confidence": line.confidence,
            "x": line.x, "y": line.y, "width": line.width, "height": line.height,
        })
    };
    let lines: Vec<Value> = text.lines.iter().map(line).collect();
    json!({ "width": text.width, "height": text.height, "lines": lines })
}
