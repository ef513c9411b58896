//! What the daemon says about a provider.

use std::fmt;
use std::time::Duration;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::Side;

use crate::quirks::Quirks;

/// One provider of the configuration.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// The name, the first half of `provider/model`.
    pub name: String,
    /// How it is talked to.
    pub api: Api,
    /// Where it is, with the version: `https://api.example.com/v1`. Not used by [`Api::Demo`].
    pub base_url: String,
    /// What it is paid with.
    pub api_key: Option<Secret>,
    /// The row of the vendors' list that it is, or is like; see [`crate::vendors`].
    pub vendor: String,
    /// Whether nothing can be asked without a key.
    pub needs_key: bool,
    /// Where it runs.
    pub side: Side,
    /// Models to offer besides those it lists itself.
    pub models: Vec<String>,
    /// The model that is asked where nobody names one.
    pub default_model: Option<String>,
    /// Words in the names of models that are not offered.
    pub hide: Vec<String>,
    /// What its models can do, where somebody said so.
    pub stated: Stated,
    /// How long to wait for it.
    pub timeouts: Timeouts,
    /// How often to ask again.
    pub retries: Retries,
    /// Whether it may search the web for its models, where it can.
    pub native_search: bool,
    /// How it differs from its family.
    pub quirks: Quirks,
}

impl ProviderConfig {
    /// A provider of which nothing else is said: its models may take anything.
    pub fn new(name: impl Into<String>, api: Api) -> Self {
        let name = name.into();
        Self {
            name: name.clone(),
            api,
            base_url: String::new(),
            api_key: None,
            vendor: name.clone(),
            needs_key: false,
            side: if api == Api::Demo { Side::Local } else { Side::Online },
            models: Vec::new(),
            default_model: None,
            hide: Vec::new(),
            stated: Stated::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            native_search: false,
            quirks: Quirks::default(),
        }
    }
}

/// What somebody said that all models of a provider can do. It wins over whatever else is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// Media they take besides text.
    pub inputs: Option<Vec<MediaKind>>,
    /// Whether they can call tools.
    pub tools: Option<bool>,
    /// Tokens they can read at once.
    pub context_window: Option<u64>,
}

/// A family of model APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI chat completions, and everything that imitates them.
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
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini, Self::Demo];

    /// Reads the word of the configuration.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == word)
    }

    /// The word for it in the configuration.
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

/// How long to wait for a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the request until the answer begins. Some local servers read the whole prompt first.
    pub header: Duration,
    /// Between two pieces of an answer.
    pub idle: Duration,
    /// For the whole call, with all its tries.
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

/// How often to ask again when the provider is busy, broken or out of reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// At most so many more tries.
    pub more: u32,
    /// The wait before the second try; it doubles from try to try.
    pub first: Duration,
    /// The longest wait that is not asked for by the provider.
    pub longest: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { more: 4, first: Duration::from_millis(500), longest: Duration::from_secs(20) }
    }
}

const SHORTEST_SECRET: usize = 8;
/// Fewer letters of a secret give nothing away: many begin with `sk-`.
const SHORTEST_PART: usize = 4;
const HIDDEN: &str = "***";

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever sends it to where it belongs.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without any occurrence of the secret. A word as short as `test` is no secret, and
    /// looking for it would spoil every message that has it.
    pub fn redact(&self, text: String) -> String {
        if self.0.len() < SHORTEST_SECRET {
            return text;
        }
        let text = if text.contains(&self.0) { text.replace(&self.0, HIDDEN) } else { text };
        match text.strip_suffix('…').and_then(|cut| self.begins_at_the_end_of(cut)) {
            Some(whole) => format!("{whole}{HIDDEN}…"),
            None => text,
        }
    }

    /// What comes before the secret in a text that was cut in the middle of it.
    fn begins_at_the_end_of<'a>(&self, text: &'a str) -> Option<&'a str> {
        let mut starts = (SHORTEST_PART..self.0.len()).rev().filter_map(|end| self.0.get(..end));
        starts.find_map(|start| text.strip_suffix(start))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}
