//! A user's settings: model, mode and switches. They do not belong to a session.

use std::collections::BTreeMap;
use std::fmt;

use quintet_kernel::model::{Effort, ModelRef};
use quintet_kernel::port::StorageError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::agent_definition;
use super::agent_definition::{Definition, ToolsMode};
use crate::windie::fields::{Faults, Object, Wrong};
use crate::windie::user_keys::{Unreadable, keys_in};

const MODEL_LIMIT: usize = 256;
const PROVIDER_LIMIT: usize = 128;
const KEY_LIMIT: usize = 4096;
/// Providers whose keys are stored; others are ignored.
const PROVIDERS: [&str; 6] =
    ["openai", "anthropic", "google", "openrouter", "mistral", "kimi_coding"];

/// The mode with which the original client replaces its tools and keeps the mode that it has.
const REPLACE: &str = "replace_client_manifest";

/// Settings that are on or off.
const SWITCHES: [&str; 5] = [
    "speech_mode_enabled",
    "wakeword_enabled",
    "wakeword_stt_enabled",
    "browser_automation_enabled",
    "include_query_screenshot",
];
/// The other members of a patch.
const OTHERS: &str = "model_mode model_provider selected_model_id interaction_mode provider_api_keys \
    tools agent_definition";

/// The settings of a user. Their serialized form is stored.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelMode {
    Local,
    #[default]
    Online,
}

/// Whether an agent has all tools, or only those for a chat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Interaction {
    Chat,
    #[default]
    Agent,
}

impl Interaction {
    pub(crate) const WORDS: [(&str, Self); 2] = [("chat", Self::Chat), ("agent", Self::Agent)];
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

/// A model that a user chose; the daemon may not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) model: ModelRef,
    pub(crate) effort: Option<Effort>,
}

impl Settings {
    /// Reads stored settings. Fails if they do not have this version's form. Defaults must not replace
    /// them: the daemon's key would pay, and the next change would erase the user's keys.
    pub(crate) fn kept(value: Value) -> Result<Self, Unreadable> {
        // The error of serde quotes what it found, which may be a key.
        serde_json::from_value(value).map_err(|_| Unreadable)
    }

    pub(crate) fn keep(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The settings for the user, without the keys.
    pub(crate) fn shown(&self, usual: &ModelRef) -> Value {
        let mut config = self.keep();
        keys_in(&mut config).for_each(|(_, key)| key.clear());
        for (name, value) in self.snapshot(usual).as_object().into_iter().flatten() {
            config[name] = value.clone();
        }
        config
    }

    /// The settings that decide how a query is answered; `usual` is the model of users who chose none.
    pub(crate) fn snapshot(&self, usual: &ModelRef) -> Value {
        json!({
            "model_mode": self.model_mode,
            "model_provider": self.model_provider.as_deref().unwrap_or(&usual.provider),
            "selected_model_id": self.selected_model_id.as_deref().unwrap_or(&usual.model),
            "interaction_mode": self.interaction_mode,
        })
    }

    /// The model that the user chose, if any.
    pub(crate) fn choice(&self, usual: &ModelRef) -> Option<Choice> {
        let id = self.selected_model_id.as_deref()?;
        Some(choice(self.model_provider.as_deref().unwrap_or(&usual.provider), id))
    }

    /// The user's key for a provider with these names, and the name that it is stored under.
    pub(crate) fn key_for<'a>(&'a self, provider: &[&'a str]) -> Option<(&'a str, &'a str)> {
        let counts = |key: &&Key| key.enabled && !key.api_key.is_empty();
        let named = |name: &&'a str| {
            let key = self.provider_api_keys.get(*name).filter(counts)?;
            Some((*name, key.api_key.as_str()))
        };
        provider.iter().find_map(named)
    }

    pub(crate) fn apply(&mut self, patch: Patch) {
        let mut kept = self.keep();
        for (name, value) in patch.values {
            kept[name] = value;
        }
        *self = Self::kept(kept).expect("what a patch sets was checked");
        for (provider, change) in patch.provider_api_keys {
            let key = self.provider_api_keys.entry(provider).or_default();
            key.enabled = change.enabled.unwrap_or(key.enabled);
            key.api_key = change.api_key.unwrap_or(std::mem::take(&mut key.api_key));
        }
    }
}

/// A user's settings cannot be used or changed. The user is sent the reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("Your settings cannot be read: {0}")]
    Read(StorageError),
    #[error("Your settings were not changed: {0}")]
    Write(StorageError),
}

/// The model of a client's model id: the model's name and, behind `@@`, its effort.
pub(crate) fn choice(provider: &str, id: &str) -> Choice {
    let (model, variant) = id.split_once("@@").unwrap_or((id, ""));
    let word = variant.strip_suffix("-thinking").and_then(|variant| variant.rsplit('-').next());
    let model = ModelRef { provider: provider.into(), model: model.into() };
    Choice { model, effort: word.and_then(Effort::parse) }
}

/// Changes of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patch {
    /// New values, in their stored form.
    values: Map<String, Value>,
    provider_api_keys: BTreeMap<String, KeyPatch>,
    /// New tools of this connection's agent.
    pub(crate) tools: Option<ToolsPatch>,
    /// A new definition of this connection's agent.
    pub(crate) definition: Option<Definition>,
    /// The names of all changed settings, sorted.
    pub(crate) updated_keys: Vec<String>,
}

/// New tools of a connection's agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolsPatch {
    pub(crate) mode: Option<ToolsMode>,
    pub(crate) client_manifest: Option<Value>,
}

/// A change of a key.
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
    /// Reads a patch. Wrong types are faults of the message; fails if values of the right type are not
    /// accepted.
    pub(crate) fn of(payload: &Object<'_>) -> Result<Self, Wrong> {
        payload.only(&format!("{} {OTHERS}", SWITCHES.join(" ")));
        let faults = Faults::default();
        let sense = payload.judged(&faults);
        let patch = Self {
            values: values(payload, &sense),
            provider_api_keys: keys(payload, &sense),
            tools: payload.object("tools").map(|tools| tools_patch(&tools)),
            definition: payload.object("agent_definition").map(|object| Definition::of(&object)),
            updated_keys: given(payload),
        };
        faults.unless(patch)
    }
}

/// The names of the settings that a patch changes; null changes nothing.
fn given(payload: &Object<'_>) -> Vec<String> {
    let members = payload.members().iter();
    members.filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()).collect()
}

fn values(payload: &Object<'_>, sense: &Object<'_>) -> Map<String, Value> {
    let is_text = |name| payload.text(name, 0..=usize::MAX).is_some();
    let mode = |name, words: [&'static str; 2]| {
        let value = Some(sense.field(name)).filter(|_| is_text(name));
        Some((name, value?.choice(&words.map(|word| (word, word)))?.into()))
    };
    let name = |name, most| {
        let value = Some(sense.field(name)).filter(|_| is_text(name));
        Some((name, value?.solid_text(most)?.into()))
    };
    let switch = |name| Some((name, payload.field(name).flag()?.into()));
    let texts = [
        mode("model_mode", ["local", "online"]),
        name("model_provider", PROVIDER_LIMIT),
        name("selected_model_id", MODEL_LIMIT),
        mode("interaction_mode", ["chat", "agent"]),
    ];
    let given = texts.into_iter().chain(SWITCHES.map(switch)).flatten();
    given.map(|(name, value): (&str, Value)| (name.into(), value)).collect()
}

fn keys(payload: &Object<'_>, sense: &Object<'_>) -> BTreeMap<String, KeyPatch> {
    let is_object = payload.object("provider_api_keys").is_some();
    let keys = if is_object { sense.object("provider_api_keys") } else { None };
    let Some(keys) = keys else { return BTreeMap::new() };
    let known = |provider: &&str| Some(((*provider).into(), key_patch(&keys.object(provider)?)));
    PROVIDERS.iter().filter_map(known).collect()
}

/// Reads the change of a key. Clients are shown an empty key and may send it back, so it changes nothing;
/// null removes the key.
fn key_patch(key: &Object<'_>) -> KeyPatch {
    key.only("enabled api_key");
    let api_key = match key.members().get("api_key") {
        Some(Value::Null) => Some(String::new()),
        _ => key.text("api_key", 0..=KEY_LIMIT).filter(|key| !key.is_empty()),
    };
    KeyPatch { enabled: key.field("enabled").flag(), api_key }
}

fn tools_patch(tools: &Object<'_>) -> ToolsPatch {
    tools.only("mode client_manifest");
    let is_named = tools.member("mode").is_some_and(|mode| *mode != REPLACE);
    let mode = is_named.then(|| agent_definition::tools_mode(tools));
    ToolsPatch { mode, client_manifest: tools.member("client_manifest").cloned() }
}

#[cfg(test)]
mod tests;
