//! The sources of transcription and speech.

use anyhow::{Result, bail};
use quintet_kernel::model::ModelRef;
use quintet_providers::Api;

use super::{Layers, Provider};

const TRANSCRIPTION: &str = "senses.transcription";

/// The source of transcripts or speech.
#[derive(Clone, Debug)]
pub(crate) enum VoiceSource {
    Off,
    /// A local model.
    Local,
    /// A model of a provider.
    Provider {
        config: Box<Provider>,
        model: String,
    },
}

/// The source of transcripts of audio streams.
#[derive(Clone, Debug)]
pub(crate) enum TranscriptionSource {
    /// This machine detects the utterances, and they are transcribed one by one.
    Utterances(VoiceSource),
    /// A provider's model that accepts a live stream of audio.
    Realtime {
        config: Box<Provider>,
        model: String,
        /// The model that the connection is opened for.
        session_model: String,
    },
    /// A Nova gateway.
    Nova { url: String },
}

impl VoiceSource {
    /// The name of the source for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Off => "off".into(),
            Self::Local => "local".into(),
            Self::Provider { config, model } => format!("{}/{model}", config.name),
        }
    }

    /// True for a local model.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }
}

impl TranscriptionSource {
    /// The name of the source for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Utterances(source) => source.name(),
            Self::Realtime { config, model, .. } => format!("{}/{model}, realtime", config.name),
            Self::Nova { url } => format!("nova, {url}"),
        }
    }
}

/// Parses the source of transcripts. Fails like [`source`], and if a gateway has no WebSocket
/// address.
pub(super) fn transcription(
    layers: &Layers,
    providers: &[Provider],
) -> Result<TranscriptionSource> {
    let (key, url) = (TRANSCRIPTION, "senses.nova_url");
    if layers.str(key) == Some("nova") {
        return match layers.str(url) {
            Some(text) if text.starts_with("ws://") || text.starts_with("wss://") => {
                Ok(TranscriptionSource::Nova { url: text.into() })
            }
            Some(text) => bail!("{url} must be an address like ws://host:port/path, not {text:?}"),
            None => bail!("{key} = \"nova\" needs {url}"),
        };
    }
    let key = "senses.realtime_session_model";
    let session_model = layers.str(key).filter(|model| !model.is_empty());
    let plain = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    if let Some(model) = session_model.filter(|model| !model.chars().all(plain)) {
        bail!("{key} must be the name of a model, not {model:?} ({})", layers.source(key));
    }
    let source = source(layers, providers, TRANSCRIPTION)?;
    Ok(match (source, session_model) {
        (VoiceSource::Provider { config, model }, Some(session_model)) => {
            TranscriptionSource::Realtime { config, model, session_model: session_model.into() }
        }
        (source, _) => TranscriptionSource::Utterances(source),
    })
}

/// Parses a source. Fails if it names a provider without an OpenAI-compatible API.
pub(super) fn source(layers: &Layers, providers: &[Provider], key: &str) -> Result<VoiceSource> {
    let more = if key == TRANSCRIPTION { ", \"nova\"" } else { "" };
    let word = match layers.str(key).unwrap_or("local") {
        "off" => return Ok(VoiceSource::Off),
        "local" => return Ok(VoiceSource::Local),
        word => word,
    };
    let Some(ModelRef { provider, model }) = ModelRef::parse(word) else {
        bail!(
            "{key} must be \"local\", \"off\"{more} or provider/model, not {word:?} ({})",
            layers.source(key)
        );
    };
    let Some(config) = providers.iter().find(|config| config.name == provider) else {
        bail!("{key} names {provider:?}, which is not configured as a provider");
    };
    match config.api {
        Api::OpenAiChat | Api::OpenAiResponses => {
            Ok(VoiceSource::Provider { config: Box::new(config.clone()), model })
        }
        Api::Anthropic | Api::Gemini | Api::Demo => bail!(
            "{key} names {provider:?}, which has no OpenAI-compatible API (its api is {})",
            config.api.name()
        ),
    }
}
