//! The options of embeddings, OCR and vision.

use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::{Result, bail};
use quintet_kernel::model::ModelRef;
use quintet_providers::{Api, Secret};
use quintet_senses::Settings;

use super::voice::{self, TranscriptionSource, VoiceSource};
use super::{Layers, Provider, local};

/// More threads hardly make a sense faster.
const THREADS_LIMIT: usize = 4;

/// Dimensions of common embedding models, by the prefix of their names.
const DIMENSIONS: &[(&str, usize)] = &[
    ("text-embedding-3-small", 1536),
    ("text-embedding-3-large", 3072),
    ("text-embedding-ada-002", 1536),
    ("mistral-embed", 1024),
    ("nomic-embed-text", 768),
    ("mxbai-embed-large", 1024),
    ("bge-m3", 1024),
    ("all-minilm", 384),
];

/// The settings of the senses.
#[derive(Clone, Debug)]
pub(crate) struct Senses {
    /// The settings of local models.
    pub(crate) settings: Settings,
    pub(crate) embeddings: EmbeddingSource,
    /// True if text in pictures is recognized on this machine.
    pub(crate) ocr: bool,
    /// The transcription of speech.
    pub(crate) transcription: TranscriptionSource,
    /// The voice that reads answers aloud.
    pub(crate) speech: VoiceSource,
    /// The provider's voice, if a provider synthesizes speech.
    pub(crate) voice: String,
    /// The model that describes pictures, if any.
    pub(crate) vision: Option<ModelRef>,
}

/// The source of vectors.
#[derive(Clone, Debug)]
pub(crate) enum EmbeddingSource {
    Off,
    /// A local model.
    Local,
    /// A model of a provider.
    Provider {
        config: Box<Provider>,
        model: String,
        dimensions: usize,
        /// True if the configuration gives the dimensions, which are then requested.
        shorten: bool,
    },
    /// The internal embedding service of another daemon.
    Service {
        url: String,
        key: Secret,
    },
}

impl Senses {
    /// The names of the weights that are used.
    pub(crate) fn weights(&self) -> Vec<&'static str> {
        let embeddings = matches!(self.embeddings, EmbeddingSource::Local).then_some("embeddings");
        use TranscriptionSource::{Nova, Realtime, Utterances};
        let (transcription, transcribes) = match self.transcription {
            Utterances(VoiceSource::Off) => (None, false),
            Utterances(VoiceSource::Local) => (Some("transcription"), true),
            Utterances(VoiceSource::Provider { .. }) => (Some("voice-activity"), true),
            Realtime { .. } | Nova { .. } => (None, true),
        };
        let speech = matches!(self.speech, VoiceSource::Local).then_some("speech");
        let ocr = self.ocr.then_some("ocr");
        // `quintet listen` detects the wake word and then transcribes.
        let wake_word = transcribes.then_some("wake-word");
        [embeddings, ocr, transcription, speech, wake_word].into_iter().flatten().collect()
    }
}

pub(super) fn parse(layers: &Layers, providers: &[Provider]) -> Result<Senses> {
    let threads = layers.number("senses.threads").and_then(|number| usize::try_from(number).ok());
    let cores = available_parallelism().map_or(1, usize::from);
    Ok(Senses {
        settings: Settings {
            models_dir: local::models_dir(layers)?,
            idle: Duration::from_secs(layers.number("senses.idle_seconds").unwrap_or(300)),
            threads: threads.filter(|n| *n > 0).unwrap_or(cores.min(THREADS_LIMIT)),
        },
        embeddings: embeddings(layers, providers)?,
        ocr: super::choice(layers, "senses.ocr", &[("local", true), ("off", false)])?,
        transcription: voice::transcription(layers, providers)?,
        speech: voice::source(layers, providers, "senses.speech")?,
        voice: layers.str("senses.voice").unwrap_or("alloy").into(),
        vision: vision(layers)?,
    })
}

fn embeddings(layers: &Layers, providers: &[Provider]) -> Result<EmbeddingSource> {
    let key = "senses.embeddings";
    match layers.str(key).unwrap_or("local") {
        "off" => Ok(EmbeddingSource::Off),
        "local" => Ok(EmbeddingSource::Local),
        "remote-http" => service(layers),
        word => {
            let Some(model) = ModelRef::parse(word) else {
                bail!(
                    "{key} must be \"local\", \"off\", \"remote-http\" or provider/model, not \
                     {word:?} ({})",
                    layers.source(key)
                );
            };
            provider(layers, providers, model)
        }
    }
}

/// The internal embedding service of another daemon.
fn service(layers: &Layers) -> Result<EmbeddingSource> {
    let (url, key) = ("senses.embedding_url", "senses.embedding_key");
    match (layers.str(url), layers.str(key).filter(|key| !key.is_empty())) {
        (Some(text), Some(key)) if text.starts_with("http://") || text.starts_with("https://") => {
            Ok(EmbeddingSource::Service { url: text.into(), key: Secret::new(key) })
        }
        (Some(text), Some(_)) => {
            bail!("{url} must be an address like http://host:8765, not {text:?}")
        }
        (None, _) | (_, None) => {
            bail!("senses.embeddings = \"remote-http\" needs {url} and {key}")
        }
    }
}

fn provider(layers: &Layers, providers: &[Provider], model: ModelRef) -> Result<EmbeddingSource> {
    let ModelRef { provider, model } = model;
    let Some(config) = providers.iter().find(|config| config.name == provider) else {
        bail!("senses.embeddings names {provider:?}, which is not configured as a provider");
    };
    match config.api {
        Api::OpenAiChat | Api::OpenAiResponses => {}
        Api::Anthropic | Api::Gemini | Api::Demo => bail!(
            "senses.embeddings names {provider:?}, which has no OpenAI-compatible API (its api is {})",
            config.api.name()
        ),
    }
    let given = layers.number("senses.embedding_dimensions");
    let given = given.and_then(|number| usize::try_from(number).ok()).filter(|n| *n > 0);
    let name = model.rsplit('/').next().unwrap_or(&model);
    let known = DIMENSIONS.iter().find(|(known, _)| name.starts_with(known));
    let Some(dimensions) = given.or(known.map(|(_, dimensions)| *dimensions)) else {
        bail!("set senses.embedding_dimensions: those of {model} are not known");
    };
    Ok(EmbeddingSource::Provider {
        config: Box::new(config.clone()),
        model,
        dimensions,
        shorten: given.is_some_and(|given| known.is_some_and(|(_, known)| *known != given)),
    })
}

fn vision(layers: &Layers) -> Result<Option<ModelRef>> {
    let key = "senses.vision";
    match layers.str(key).unwrap_or("off") {
        "off" => Ok(None),
        word => match ModelRef::parse(word) {
            Some(model) => Ok(Some(model)),
            None => {
                bail!(
                    "{key} must be \"off\" or provider/model, not {word:?} ({})",
                    layers.source(key)
                )
            }
        },
    }
}
