//! What users of front ends pay providers with: encrypted where it is kept, looked up when a model is
//! asked. If it cannot be read the model is not asked, because somebody else would pay.

mod vault;

use std::fmt;
use std::sync::Arc;

use quintet_dialects::windie;
use quintet_kernel::model::Account;
use quintet_kernel::port::{BoxFuture, Preferences, StorageError};
use quintet_providers::{Accounts, Secret};
use serde_json::Value;
use tokio::sync::Mutex;

pub(crate) use vault::Vault;

/// Keys among the settings of users.
pub(crate) struct UserKeys {
    pub(crate) settings: Arc<dyn Preferences>,
    pub(crate) vault: Arc<Vault>,
}

impl Accounts for UserKeys {
    fn key<'a>(
        &'a self,
        account: &'a Account,
        provider: [&'a str; 2],
    ) -> BoxFuture<'a, Result<Option<Secret>, String>> {
        Box::pin(async move {
            let Account { space, name } = account;
            let unreadable = |error: &dyn fmt::Display| {
                format!("the settings of this user cannot be read ({error}), so nobody pays")
            };
            let kept = self.settings.preference(space, name).await.map_err(|e| unreadable(&e))?;
            // A turn names an account only if its user has settings; if they are gone, so is the key.
            let kept = kept.ok_or_else(|| unreadable(&"there are none any more"))?;
            let own = windie::own_key(kept, &provider).map_err(|error| unreadable(&error))?;
            let Some((provider, sealed)) = own else { return Ok(None) };
            let key = self.vault.open(&sealed, &purpose([space, name, &provider])).await;
            key.map(|key| Some(Secret::new(key))).map_err(|error| {
                format!(
                    "this user's own key for {provider} cannot be read: {error}; enter it again"
                )
            })
        })
    }
}

impl fmt::Debug for UserKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKeys")
    }
}

/// Settings of front ends, in which keys are encrypted. Those who read them see them so; only who
/// pays with a key decrypts it.
pub(crate) struct SealedSettings {
    settings: Arc<dyn Preferences>,
    vault: Arc<Vault>,
    /// Held while settings are written, so that older ones never replace newer ones.
    writing: Mutex<()>,
}

impl SealedSettings {
    pub(crate) fn new(settings: Arc<dyn Preferences>, vault: Arc<Vault>) -> Self {
        Self { settings, vault, writing: Mutex::default() }
    }

    /// Encrypts the keys that are not yet; says whether there were any.
    async fn seal(&self, space: &str, name: &str, value: &mut Value) -> Result<bool, StorageError> {
        let mut sealed = false;
        for (provider, key) in windie::keys_in(value).filter(|(_, key)| !Vault::is_sealed(key)) {
            let kept = self.vault.seal(key, &purpose([space, name, provider])).await;
            *key = kept.map_err(|error| {
                StorageError::Unavailable(format!("a key cannot be encrypted: {error}"))
            })?;
            sealed = true;
        }
        Ok(sealed)
    }

    /// Encrypts what an older version kept as it came.
    async fn migrate(&self, space: &str, name: &str) -> Result<Option<Value>, StorageError> {
        let _alone = self.writing.lock().await;
        let Some(mut value) = self.settings.preference(space, name).await? else { return Ok(None) };
        if self.seal(space, name, &mut value).await? {
            self.settings.prefer(space, name, value.clone()).await?;
        }
        Ok(Some(value))
    }
}

impl Preferences for SealedSettings {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(async move {
            let mut kept = self.settings.preference(&space, &name).await?;
            let clear = |value| windie::keys_in(value).any(|(_, key)| !Vault::is_sealed(key));
            if kept.as_mut().is_some_and(clear) {
                return self.migrate(&space, &name).await;
            }
            Ok(kept)
        })
    }

    fn prefer(
        &self,
        space: &str,
        name: &str,
        mut value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(async move {
            let _alone = self.writing.lock().await;
            self.seal(&space, &name, &mut value).await?;
            self.settings.prefer(&space, &name, value).await
        })
    }
}

/// What a key is encrypted for: its space, owner and provider. In another place it cannot be decrypted.
fn purpose(of: [&str; 3]) -> String {
    of.join("\n")
}

#[cfg(test)]
mod tests;
