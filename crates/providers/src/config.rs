//! The configuration of a provider.

use std::fmt;
use std::time::Duration;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::ModelLocation;

use crate::quirks::Quirks;

/// One provider of the configuration.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The name, the first half of `provider/model`.
    pub name: String,
    /// The family of its API.
    pub api: Api,
    /// The base URL with the version: `https://api.example.com/v1`. Not used by [`Api::Demo`].
    pub base_url: String,
    /// The API key.
    pub api_key: Option<Secret>,
    /// The vendor whose row of [`crate::vendors`] describes it.
    pub vendor: String,
    /// True if no model can be called without a key.
    pub needs_key: bool,
    /// Where its models run.
    pub side: ModelLocation,
    /// Models to offer in addition to those that the provider lists.
    pub models: Vec<String>,
    /// The model that is used if none is named.
    pub default_model: Option<String>,
    /// Words in the names of models that are not offered.
    pub hide: Vec<String>,
    /// Capabilities of its models, if the configuration sets them.
    pub overrides: ModelOverrides,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Retries.
    pub retries: Retries,
    /// True if the provider may search the web for its models.
    pub native_search: bool,
    /// Differences from its API family.
    pub quirks: Quirks,
}

impl ProviderConfig {
    /// A provider with defaults: its models may take any input.
    pub fn new(name: impl Into<String>, api: Api) -> Self {
        let name = name.into();
        Self {
            name: name.clone(),
            api,
            base_url: String::new(),
            api_key: None,
            vendor: name.clone(),
            needs_key: false,
            side: if api == Api::Demo { ModelLocation::Local } else { ModelLocation::Online },
            models: Vec::new(),
            default_model: None,
            hide: Vec::new(),
            overrides: ModelOverrides::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            native_search: false,
            quirks: Quirks::default(),
        }
    }
}

/// Capabilities that the configuration states for all models of a provider; they override the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOverrides {
    /// Media that the models accept in addition to text.
    pub inputs: Option<Vec<MediaKind>>,
    /// True if the models can call tools.
    pub tools: Option<bool>,
    /// The context window in tokens.
    pub context_window: Option<u64>,
}

/// A family of model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions and compatible APIs.
    OpenAiChat,
    /// OpenAI responses.
    OpenAiResponses,
    /// Anthropic messages.
    Anthropic,
    /// Gemini `generateContent`.
    Gemini,
    /// The rule-based model inside the daemon; see [`crate::demo`].
    Demo,
}

impl Api {
    /// All families.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Demo];

    /// The family of that name in the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == word)
    }

    /// The name used in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Demo => "demo",
        }
    }
}

/// Time limits of calls to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request until the answer starts. Some local servers read the whole prompt first.
    pub header: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For the whole call, with all its attempts.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            header: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            total: Duration::from_secs(3600),
        }
    }
}

/// Retries of calls if the provider is overloaded, fails or cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Number of attempts after the first.
    pub max_retries: u32,
    /// The wait before the second attempt; it doubles with each attempt.
    pub first_wait: Duration,
    /// The longest wait, unless the provider requests a longer one.
    pub longest_wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            max_retries: 4,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(20),
        }
    }
}

const SECRET_LENGTH_MINIMUM: usize = 8;
/// A shorter prefix of a secret is not redacted: many begin with `sk-`.
const SECRET_PREFIX_MINIMUM: usize = 4;
const HIDDEN: &str = "***";

/// A secret that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret itself, to be sent to its provider.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text with every occurrence of the secret replaced. A short word such as `test` is not replaced,
    /// because that would garble unrelated messages.
    pub fn redact(&self, text: String) -> String {
        if self.0.len() < SECRET_LENGTH_MINIMUM {
            return text;
        }
        let text = if text.contains(&self.0) { text.replace(&self.0, HIDDEN) } else { text };
        match text.strip_suffix('…').and_then(|cut| self.before_partial_secret(cut)) {
            Some(whole) => format!("{whole}{HIDDEN}…"),
            None => text,
        }
    }

    /// The text before an incomplete secret at its end.
    fn before_partial_secret<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut starts =
            (SECRET_PREFIX_MINIMUM..self.0.len()).rev().filter_map(|end| self.0.get(..end));
        starts.find_map(|start| text.strip_suffix(start))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}
