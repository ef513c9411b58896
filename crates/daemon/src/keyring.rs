//! The desktop's keyring: GNOME Keyring, KWallet, KeePassXC or another Secret Service of this
//! session.
//!
//! `quintet keys` may ask the user to unlock the keyring. The daemon never does: it reads unlocked keys, within
//! a second, and only those that `quintet keys` stored.

mod error;
mod lookup;
mod names;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use secret_service::{Collection, EncryptionType, Error, SearchItemsResult, SecretService};
use tokio::time::timeout;

pub(crate) use error::KeyringError;
pub(crate) use lookup::KeyringKeys;
pub(crate) use names::Names;

/// Timeout of a lookup without the user; the service is on this machine.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Timeout of an action during which the user may have to enter a password.
const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);

/// The attribute of Quintet's keys; `secret-tool` finds them by it.
const APPLICATION_ATTRIBUTE: (&str, &str) = ("application", "quintet");
const PROVIDER: &str = "provider";
/// The attribute of the key that other keys are encrypted with.
const VAULT: &str = "vault";

/// Reads the keys of these names without prompting the user.
pub(crate) fn look_up(names: &[String]) -> KeyringKeys {
    if names.is_empty() {
        return KeyringKeys::default();
    }
    let looked = within(LOOKUP_TIMEOUT, async {
        let keyring = Keyring::open().await?;
        let mut found = KeyringKeys::default();
        for name in names {
            found.add(name, keyring.key((PROVIDER, name)).await);
        }
        Ok(found)
    });
    looked.unwrap_or_else(|trouble| KeyringKeys::nothing(names, &trouble))
}

/// Reads the key that other keys are encrypted with, without prompting the user. Fails if it cannot be read.
pub(crate) fn vault_key(name: &str) -> Result<String, KeyringError> {
    within(LOOKUP_TIMEOUT, async { Keyring::open().await?.key((VAULT, name)).await })
}

/// Stores the key that other keys are encrypted with. Fails if that would prompt the user.
pub(crate) fn set_vault_key(name: &str, key: &str) -> Result<(), KeyringError> {
    within(LOOKUP_TIMEOUT, async {
        let keyring = Keyring::open().await?;
        let collection = keyring.service.get_default_collection().await?;
        if collection.is_locked().await? {
            return Err(KeyringError::Locked);
        }
        let marks = HashMap::from([APPLICATION_ATTRIBUTE, (VAULT, name)]);
        let label = "Quintet: what users' keys are encrypted with";
        collection.create_item(label, marks, key.as_bytes(), true, "text/plain").await?;
        Ok(())
    })
}

/// Checks that a keyring is available. Fails if there is none.
pub(crate) fn reach() -> Result<(), KeyringError> {
    within(PROMPT_TIMEOUT, async { Keyring::open().await.map(|_| ()) })
}

/// Stores a key, replacing the one of this name. Fails if the keyring cannot be written.
pub(crate) fn set(name: &str, key: &str) -> Result<(), KeyringError> {
    within(PROMPT_TIMEOUT, async { Keyring::open().await?.set(name, key).await })
}

/// Removes a key; returns true if there was one. Fails if the keyring cannot be written.
pub(crate) fn forget(name: &str) -> Result<bool, KeyringError> {
    within(PROMPT_TIMEOUT, async { Keyring::open().await?.forget(name).await })
}

/// The names of all of Quintet's keys, and whether each is locked. Fails if the keyring cannot be read.
pub(crate) fn list(recorded: &[String]) -> Result<BTreeMap<String, bool>, KeyringError> {
    within(PROMPT_TIMEOUT, async { Keyring::open().await?.list(recorded).await })
}

/// Runs on its own runtime, which is abandoned if it hangs.
fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, KeyringError>>,
) -> Result<T, KeyringError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| KeyringError::Other(error.to_string()))?;
    let done = runtime.block_on(async { timeout(patience, work).await });
    runtime.shutdown_background();
    done.unwrap_or(Err(KeyringError::Silent))
}

struct Keyring {
    service: SecretService<'static>,
}

impl Keyring {
    /// Opens an encrypted session, so that keys cannot be read from the bus.
    async fn open() -> Result<Self, KeyringError> {
        let service = SecretService::connect(EncryptionType::Dh).await;
        Ok(Self { service: service.map_err(KeyringError::absent)? })
    }

    async fn key(&self, mark: (&str, &str)) -> Result<String, KeyringError> {
        let items = self.items(mark).await?;
        let Some(item) = items.unlocked.first() else {
            return Err(if items.locked.is_empty() {
                KeyringError::Missing
            } else {
                KeyringError::Locked
            });
        };
        let key = String::from_utf8(item.get_secret().await?);
        let key = key.map_err(|_| KeyringError::Other("what is there is not text".into()))?;
        Ok(key.trim_end().to_owned())
    }

    async fn set(&self, name: &str, key: &str) -> Result<(), KeyringError> {
        let collection = self.collection().await?;
        if collection.is_locked().await? {
            collection.unlock().await?;
        }
        let label = format!("Quintet: key for {name}");
        let marks = HashMap::from([APPLICATION_ATTRIBUTE, (PROVIDER, name)]);
        collection.create_item(&label, marks, key.as_bytes(), true, "text/plain").await?;
        Ok(())
    }

    /// The default collection of the user; never the one that is deleted at the end of the session.
    async fn collection(&self) -> Result<Collection<'_>, KeyringError> {
        match self.service.get_default_collection().await {
            Err(Error::NoResult) => Ok(self.service.create_collection("Login", "default").await?),
            given => Ok(given?),
        }
    }

    async fn forget(&self, name: &str) -> Result<bool, KeyringError> {
        let items = self.items((PROVIDER, name)).await?;
        for item in &items.locked {
            item.unlock().await?;
        }
        for item in items.locked.iter().chain(&items.unlocked) {
            item.delete().await?;
        }
        Ok(!items.locked.is_empty() || !items.unlocked.is_empty())
    }

    /// Lists the keys. A locked key may hide its name, so recorded names are looked up one by one.
    async fn list(&self, recorded: &[String]) -> Result<BTreeMap<String, bool>, KeyringError> {
        let mut names = BTreeMap::new();
        for item in
            &self.service.search_items(HashMap::from([APPLICATION_ATTRIBUTE])).await?.unlocked
        {
            if let Some(name) = item.get_attributes().await?.remove(PROVIDER) {
                names.insert(name, false);
            }
        }
        for name in recorded {
            if !names.contains_key(name) && !self.items((PROVIDER, name)).await?.locked.is_empty() {
                names.insert(name.clone(), true);
            }
        }
        Ok(names)
    }

    async fn items(
        &self,
        mark: (&str, &str),
    ) -> Result<SearchItemsResult<secret_service::Item<'_>>, KeyringError> {
        Ok(self.service.search_items(HashMap::from([APPLICATION_ATTRIBUTE, mark])).await?)
    }
}
