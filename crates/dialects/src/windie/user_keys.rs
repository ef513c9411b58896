//! The provider keys that users entered, as they are stored with their settings.
//!
//! The daemon encrypts them where they are stored and looks them up when a model is called for a user.

use quintet_kernel::model::Account;
use quintet_kernel::port::StorageError;
use serde_json::Value;

use super::wire::user_settings::Settings;

/// Stored settings that are not of this version's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "they are damaged or of another version; start the version that wrote them, or restore a backup of quintet.db"
)]
pub struct Unreadable;

impl From<Unreadable> for StorageError {
    fn from(unreadable: Unreadable) -> Self {
        Self::Damaged(unreadable.to_string())
    }
}

/// The space of the users' settings in the store.
pub const SPACE: &str = "windie";

/// The account of a user who has API keys of their own.
pub(crate) fn account(user: &str) -> Account {
    Account { space: SPACE.into(), name: user.into() }
}

/// The provider name and API key that a user stored for a provider, which may go by several names;
/// `None` if the daemon's key is used. Fails if the settings cannot be read, because then it is not
/// known which key to use.
pub fn own_key(kept: Value, provider: &[&str]) -> Result<Option<(String, String)>, Unreadable> {
    let settings = Settings::kept(kept)?;
    let own = settings.key_for(provider);
    Ok(own.map(|(provider, key)| (provider.to_owned(), key.to_owned())))
}

/// The beginning of the message for a user whose own key cannot be used.
pub(crate) const UNUSABLE_KEY: &str = "Your own API key cannot be used";

/// The message for a user whose own key cannot be used.
pub fn unusable_key(reason: &str) -> String {
    format!("{UNUSABLE_KEY}: {reason}")
}

/// All API keys in stored user settings, by provider, for encryption.
pub fn keys_in(kept: &mut Value) -> impl Iterator<Item = (&str, &mut String)> {
    let keys = kept.get_mut("provider_api_keys").and_then(Value::as_object_mut);
    keys.into_iter().flatten().filter_map(|(provider, key)| match key.get_mut("api_key") {
        Some(Value::String(key)) if !key.is_empty() => Some((provider.as_str(), key)),
        _ => None,
    })
}
