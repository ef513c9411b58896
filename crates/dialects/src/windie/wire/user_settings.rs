//! What a user set: which model, which mode, which switches. Nothing of it is a session's.

use std::collections::BTreeMap;
use std::fmt;

use quintet_kernel::model::{Effort, ModelRef};
use quintet_kernel::port::StorageError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::agent_definition;
use super::agent_definition::{Definition, ToolsMode};
use super::fields::{Faults, Object, Wrong};
use crate::windie::user_keys::Unreadable;

/// The longest name of a model.
const LONGEST_MODEL: usize = 256;
/// The longest name of a provider.
const LONGEST_PROVIDER: usize = 128;
/// The longest key.
const LONGEST_KEY: usize = 4096;
/// Providers whose keys are kept; those of others are passed over.
const PROVIDERS: [&str; 6] =
    ["openai", "anthropic", "google", "openrouter", "mistral", "kimi_coding"];

/// How the original client says that it brings other tools, which count as those before them did.
const REPLACE: &str = "replace_client_manifest";

const MEMBERS: [&str; 12] = [
    "model_mode",
    "model_provider",
    "selected_model_id",
    "interaction_mode",
    "speech_mode_enabled",
    "wakeword_enabled",
    "wakeword_stt_enabled",
    "browser_automation_enabled",
    "include_query_screenshot",
    "provider_api_keys",
    "tools",
    "agent_definition",
];

/// What a user set. Its serialized form is how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) model_mode: ModelMode,
    pub(crate) model_provider: Option<String>,
    pub(crate) selected_model_id: Option<String>,
    pub(crate) interaction_mode: Interaction,
    pub(crate) speech_mode_enabled: bool,
    pub(crate) wakeword_enabled: bool,
    pub(crate) wakeword_stt_enabled: bool,
    pub(crate) browser_automation_enabled: bool,
    pub(crate) include_query_screenshot: bool,
    pub(crate) provider_api_keys: BTreeMap<String, Key>,
}

/// Where the model runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelMode {
    Local,
    #[default]
    Online,
}

/// What the agent may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Interaction {
    Chat,
    #[default]
    Agent,
}

impl ModelMode {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Online => "online",
        }
    }
}

impl Interaction {
    /// Reads the word for it.
    pub(crate) fn named(word: &str) -> Option<Self> {
        [Self::Chat, Self::Agent].into_iter().find(|mode| mode.name() == word)
    }

    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Agent => "agent",
        }
    }
}

/// A user's key for a provider.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) enabled: bool,
    pub(crate) api_key: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model_mode: ModelMode::Online,
            model_provider: None,
            selected_model_id: None,
            interaction_mode: Interaction::Agent,
            speech_mode_enabled: false,
            wakeword_enabled: true,
            wakeword_stt_enabled: false,
            browser_automation_enabled: false,
            include_query_screenshot: true,
            provider_api_keys: BTreeMap::new(),
        }
    }
}

/// A model that a user chose, as far as the daemon knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) model: ModelRef,
    /// How much it should think.
    pub(crate) effort: Option<Effort>,
}

impl Settings {
    /// Reads what was kept. Fails if it is not of this version's form. Defaults must not stand in for
    /// it: somebody else would pay, and the next change would erase the user's keys.
    pub(crate) fn kept(value: Value) -> Result<Self, Unreadable> {
        // The error of serde quotes what it found, which may be a key.
        serde_json::from_value(value).map_err(|_| Unreadable)
    }

    /// How it is kept.
    pub(crate) fn keep(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// What the user is shown: all of it, but no key.
    pub(crate) fn shown(&self, usual: &ModelRef) -> Value {
        let shown = |(provider, key): (&String, &Key)| {
            (provider.clone(), json!({ "enabled": key.enabled, "api_key": "" }))
        };
        let keys: Map<String, Value> = self.provider_api_keys.iter().map(shown).collect();
        let mut config = self.snapshot(usual);
        config["speech_mode_enabled"] = self.speech_mode_enabled.into();
        config["wakeword_enabled"] = self.wakeword_enabled.into();
        config["wakeword_stt_enabled"] = self.wakeword_stt_enabled.into();
        config["browser_automation_enabled"] = self.browser_automation_enabled.into();
        config["include_query_screenshot"] = self.include_query_screenshot.into();
        config["provider_api_keys"] = keys.into();
        config
    }

    /// What of it decides how a query is answered; the usual model is that of users who chose none.
    pub(crate) fn snapshot(&self, usual: &ModelRef) -> Value {
        let provider = self.model_provider.as_deref().unwrap_or(&usual.provider);
        json!({
            "model_mode": self.model_mode.name(),
            "model_provider": provider,
            "selected_model_id": self.selected_model_id.as_deref().unwrap_or(&usual.model),
            "interaction_mode": self.interaction_mode.name(),
        })
    }

    /// The model that the user chose; nothing if they did not, so that the usual one counts.
    pub(crate) fn choice(&self, usual: &ModelRef) -> Option<Choice> {
        let id = self.selected_model_id.as_deref()?;
        Some(choice(self.model_provider.as_deref().unwrap_or(&usual.provider), id))
    }

    /// What the user pays a provider with, which goes by these names, the most special first; nothing
    /// if the daemon pays.
    pub(crate) fn key_for<'a>(&'a self, provider: &[&'a str]) -> Option<(&'a str, &'a str)> {
        let counts = |key: &&Key| key.enabled && !key.api_key.is_empty();
        let named = |name: &&'a str| {
            let key = self.provider_api_keys.get(*name).filter(counts)?;
            Some((*name, key.api_key.as_str()))
        };
        provider.iter().find_map(named)
    }

    /// Sets what a patch says.
    pub(crate) fn apply(&mut self, patch: Patch) {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        set(&mut self.model_mode, patch.model_mode);
        set(&mut self.interaction_mode, patch.interaction_mode);
        set(&mut self.speech_mode_enabled, patch.speech_mode_enabled);
        set(&mut self.wakeword_enabled, patch.wakeword_enabled);
        set(&mut self.wakeword_stt_enabled, patch.wakeword_stt_enabled);
        set(&mut self.browser_automation_enabled, patch.browser_automation_enabled);
        set(&mut self.include_query_screenshot, patch.include_query_screenshot);
        self.model_provider = patch.model_provider.or(self.model_provider.take());
        self.selected_model_id = patch.selected_model_id.or(self.selected_model_id.take());
        for (provider, change) in patch.provider_api_keys {
            let key = self.provider_api_keys.entry(provider).or_default();
            set(&mut key.enabled, change.enabled);
            set(&mut key.api_key, change.api_key);
        }
    }
}

/// A user's settings can be neither used nor changed. The reason is the user's to know.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("Your settings cannot be read: {0}")]
    Read(StorageError),
    #[error("Your settings were not changed: {0}")]
    Write(StorageError),
}

/// A model by the name that clients have for it: the model's own and, behind `@@`, a word on how
/// much it thinks.
pub(crate) fn choice(provider: &str, id: &str) -> Choice {
    let (model, variant) = id.split_once("@@").unwrap_or((id, ""));
    let word = variant.strip_suffix("-thinking").and_then(|variant| variant.rsplit('-').next());
    let model = ModelRef { provider: provider.into(), model: model.into() };
    Choice { model, effort: word.and_then(Effort::parse) }
}

/// What a client wants to have set otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patch {
    pub(crate) model_mode: Option<ModelMode>,
    pub(crate) model_provider: Option<String>,
    pub(crate) selected_model_id: Option<String>,
    pub(crate) interaction_mode: Option<Interaction>,
    pub(crate) speech_mode_enabled: Option<bool>,
    pub(crate) wakeword_enabled: Option<bool>,
    pub(crate) wakeword_stt_enabled: Option<bool>,
    pub(crate) browser_automation_enabled: Option<bool>,
    pub(crate) include_query_screenshot: Option<bool>,
    pub(crate) provider_api_keys: BTreeMap<String, KeyPatch>,
    /// Which tools the agents of this connection have from now on.
    pub(crate) tools: Option<ToolsPatch>,
    /// What the agents of this connection are from now on.
    pub(crate) definition: Option<Definition>,
    /// What was named, sorted.
    pub(crate) updated_keys: Vec<String>,
}

/// Which tools the agents of a connection have from now on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolsPatch {
    pub(crate) mode: Option<ToolsMode>,
    pub(crate) client_manifest: Option<Value>,
}

/// What a client wants to have changed about a key.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyPatch {
    pub(crate) enabled: Option<bool>,
    pub(crate) api_key: Option<String>,
}

impl fmt::Debug for KeyPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPatch").field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

impl Patch {
    /// Reads a patch. What has the wrong shape is the message's fault; what has the right one and
    /// makes no sense is told apart.
    pub(crate) fn of(payload: &Object<'_>) -> Result<Self, Wrong> {
        payload.only(&MEMBERS);
        let faults = Faults::default();
        let patch = read(payload, &payload.judged(&faults));
        faults.unless(patch)
    }
}

fn read(payload: &Object<'_>, sense: &Object<'_>) -> Patch {
    let named = payload.members().keys().filter(|name| MEMBERS.contains(&name.as_str()));
    Patch {
        model_mode: word(payload, sense, ("model_mode", &["local", "online"])).map(model_mode),
        model_provider: solid(payload, sense, ("model_provider", LONGEST_PROVIDER)),
        selected_model_id: solid(payload, sense, ("selected_model_id", LONGEST_MODEL)),
        interaction_mode: word(payload, sense, ("interaction_mode", &["chat", "agent"]))
            .and_then(Interaction::named),
        speech_mode_enabled: payload.flag("speech_mode_enabled"),
        wakeword_enabled: payload.flag("wakeword_enabled"),
        wakeword_stt_enabled: payload.flag("wakeword_stt_enabled"),
        browser_automation_enabled: payload.flag("browser_automation_enabled"),
        include_query_screenshot: payload.flag("include_query_screenshot"),
        provider_api_keys: keys(payload, sense),
        tools: payload.object("tools").map(|tools| tools_patch(&tools)),
        definition: payload.object("agent_definition").map(|object| Definition::of(&object)),
        updated_keys: named.cloned().collect(),
    }
}

fn model_mode(word: &str) -> ModelMode {
    if word == "local" { ModelMode::Local } else { ModelMode::Online }
}

fn word(
    payload: &Object<'_>,
    sense: &Object<'_>,
    (name, words): (&str, &[&'static str]),
) -> Option<&'static str> {
    payload.text(name, 0..=usize::MAX).and_then(|_| sense.word(name, words))
}

fn solid(payload: &Object<'_>, sense: &Object<'_>, of: (&str, usize)) -> Option<String> {
    let (name, most) = of;
    payload.text(name, 0..=usize::MAX).and_then(|_| sense.solid_text(name, most))
}

fn keys(payload: &Object<'_>, sense: &Object<'_>) -> BTreeMap<String, KeyPatch> {
    if payload.object("provider_api_keys").is_none() {
        return BTreeMap::new();
    }
    let Some(keys) = sense.object("provider_api_keys") else {
        return BTreeMap::new();
    };
    let known = PROVIDERS.iter().filter_map(|provider| {
        let key = keys.object(provider)?;
        Some(((*provider).into(), key_patch(&key)))
    });
    known.collect()
}

/// An empty key is how keys are shown, so a client that sends it back means the one there is; null
/// takes it away.
fn key_patch(key: &Object<'_>) -> KeyPatch {
    key.only(&["enabled", "api_key"]);
    let api_key = match key.members().get("api_key") {
        Some(Value::Null) => Some(String::new()),
        _ => key.text("api_key", 0..=LONGEST_KEY).filter(|key| !key.is_empty()),
    };
    KeyPatch { enabled: key.flag("enabled"), api_key }
}

fn tools_patch(tools: &Object<'_>) -> ToolsPatch {
    tools.only(&["mode", "client_manifest"]);
    let mode = tools.member("mode").filter(|mode| **mode != REPLACE);
    let mode = mode.map(|_| agent_definition::tools_mode(tools));
    ToolsPatch { mode, client_manifest: tools.member("client_manifest").cloned() }
}

#[cfg(test)]
mod tests;
