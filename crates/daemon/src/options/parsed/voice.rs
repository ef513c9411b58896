//! The sources of transcription and speech.

use anyhow::{Result, bail};
use quintet_kernel::model::ModelRef;
use quintet_providers::Api;

use super::{Layers, Provider};

/// The parts that work with speech.
#[derive(Clone, Debug)]
pub(crate) enum VoiceSource {
    Off,
    /// A model of this machine.
    Local,
    /// A model of a provider.
    Provider {
        config: Box<Provider>,
        model: String,
    },
}

impl VoiceSource {
    /// The source for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Off => "off".into(),
            Self::Local => "local".into(),
            Self::Provider { config, model } => format!("{}/{model}", config.name),
        }
    }
}

/// Reads a key. Fails if it names a provider that has no OpenAI-compatible API.
pub(super) fn source(layers: &Layers, providers: &[Provider], key: &str) -> Result<VoiceSource> {
    let word = match layers.str(key).unwrap_or("local") {
        "off" => return Ok(VoiceSource::Off),
        "local" => return Ok(VoiceSource::Local),
        word => word,
    };
    let Some(ModelRef { provider, model }) = ModelRef::parse(word) else {
        bail!(
            "{key} must be \"local\", \"off\" or provider/model, not {word:?} ({})",
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
