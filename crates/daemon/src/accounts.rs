//! API keys of front-end users: encrypted in the database, decrypted when a model is called. If a
//! key cannot be read the model is not called, because the wrong account would be charged.

mod vault;

use std::fmt;
use std::sync::Arc;

use quintet_dialects::user_keys;
use quintet_kernel::model::Account;
use quintet_kernel::port::{BoxFuture, Preferences, StorageError};
use quintet_providers::{Accounts, Secret};
use serde_json::Value;
use tokio::sync::Mutex;

pub(crate) use vault::{Vault, write_secret};

/// The settings space of the vault's own flag.
const SPACE: &str = "vault";
/// True if no key was ever in clear text in the database's files, or if all of them were erased.
const ERASED: &str = "clear_text_erased";

/// The API keys in users' settings.
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
                user_keys::unusable_key(&format!("your settings cannot be read: {error}"))
            };
            let kept = self.settings.preference(space, name).await.map_err(|e| unreadable(&e))?;
            // A turn names an account only if its user has settings; if those are deleted, so is
            // the key.
            let kept = kept.ok_or_else(|| unreadable(&"they were deleted"))?;
            let own = user_keys::own_key(kept, &provider).map_err(|error| unreadable(&error))?;
            let Some((provider, sealed)) = own else { return Ok(None) };
            let key = self.vault.open(&sealed, &purpose([space, name, &provider])).await;
            key.map(|key| Some(Secret::new(key))).map_err(|error| {
                let remedy = error.remedy();
                user_keys::unusable_key(&format!(
                    "your key for {provider} cannot be read: {error}; {remedy}"
                ))
            })
        })
    }
}

impl fmt::Debug for UserKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKeys")
    }
}

/// Settings of front ends with encrypted API keys. Readers see the encrypted form; a key is decrypted only for
/// the call that it pays for.
pub(crate) struct EncryptedSettings {
    settings: Arc<dyn Preferences>,
    vault: Arc<Vault>,
    /// Held until settings are queued for writing, so that older ones never replace newer ones.
    queueing: Mutex<()>,
}

impl EncryptedSettings {
    pub(crate) fn new(settings: Arc<dyn Preferences>, vault: Arc<Vault>) -> Self {
        Self { settings, vault, queueing: Mutex::default() }
    }

    /// Encrypts keys in clear text; returns true if there were any. Fails if the vault's key cannot be used.
    async fn seal(&self, space: &str, name: &str, value: &mut Value) -> Result<bool, StorageError> {
        let mut sealed = false;
        for (provider, key) in user_keys::keys_in(value).filter(|(_, key)| !Vault::is_sealed(key)) {
            let kept = self.vault.seal(key, &purpose([space, name, provider])).await;
            *key = kept.map_err(|error| {
                let remedy = error.remedy();
                StorageError::Unavailable(format!("a key cannot be encrypted: {error}; {remedy}"))
            })?;
            sealed = true;
        }
        Ok(sealed)
    }

    /// Encrypts the keys that an older version stored in clear text, and erases their traces in the
    /// database's files. No other process may use the store meanwhile. Fails if a key cannot be
    /// encrypted or storage fails; the next start retries.
    pub(crate) async fn encrypt_old_keys(
        &self,
        vacuum: impl AsyncFnOnce() -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let mut keys = false;
        for name in self.settings.names(user_keys::SPACE).await? {
            keys |= self.encrypt_old_keys_of(&name).await?;
        }
        if self.settings.preference(SPACE, ERASED).await? == Some(true.into()) {
            return Ok(());
        }
        if keys {
            vacuum().await?;
        }
        self.settings.set_preference(SPACE, ERASED, true.into()).await
    }

    /// Encrypts the stored keys of a user; returns true if there are any.
    async fn encrypt_old_keys_of(&self, name: &str) -> Result<bool, StorageError> {
        // Settings that cannot be read are reported to their user.
        let kept = self.settings.preference(user_keys::SPACE, name).await;
        let Ok(Some(mut value)) = kept else { return Ok(false) };
        if self.seal(user_keys::SPACE, name, &mut value).await? {
            self.settings.set_preference(SPACE, ERASED, false.into()).await?;
            self.settings.set_preference(user_keys::SPACE, name, value.clone()).await?;
        }
        Ok(user_keys::keys_in(&mut value).next().is_some())
    }
}

impl Preferences for EncryptedSettings {
    /// Readers see keys encrypted, even a key whose encrypted form is not stored yet.
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(async move {
            let mut kept = self.settings.preference(&space, &name).await?;
            if let Some(value) = &mut kept {
                self.seal(&space, &name, value).await?;
            }
            Ok(kept)
        })
    }

    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        self.settings.names(space)
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        mut value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(async move {
            let queued = self.queueing.lock().await;
            self.seal(&space, &name, &mut value).await?;
            let kept = self.settings.set_preference(&space, &name, value);
            // Other changes are queued meanwhile and share the commit.
            drop(queued);
            kept.await
        })
    }

    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        mut value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let (space, name) = (space.to_owned(), name.to_owned());
        Box::pin(async move {
            let queued = self.queueing.lock().await;
            self.seal(&space, &name, &mut value).await?;
            let replaced = self.settings.replace(&space, &name, expected, value);
            drop(queued);
            replaced.await
        })
    }
}

/// The purpose of an encrypted key: its space, owner and provider. It cannot be decrypted for
/// another one.
fn purpose(of: [&str; 3]) -> String {
    of.join("\n")
}

#[cfg(test)]
mod tests;
