//! The keyring of the desktop: GNOME Keyring, KWallet, KeePassXC or whatever else is the Secret
//! Service of this session.
//!
//! `quintet keys` may ask the user to unlock it. The daemon never does: it takes what is open, within
//! a second, and only looks for names that were put there.

mod found;
mod names;
mod trouble;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use secret_service::{Collection, EncryptionType, Error, SearchItemsResult, SecretService};
use tokio::time::timeout;

pub(crate) use found::Found;
pub(crate) use names::Names;
pub(crate) use trouble::Trouble;

/// Nothing but this machine is asked, so whoever takes longer hangs.
const SHORT: Duration = Duration::from_secs(1);
/// A person may have to find the password first.
const LONG: Duration = Duration::from_secs(120);

/// What marks a key as ours; `secret-tool` finds it by the same words.
const OURS: (&str, &str) = ("application", "quintet");
const PROVIDER: &str = "provider";
/// What marks the key that other keys are encrypted with.
const VAULT: &str = "vault";

/// Fetches what there is under these names without asking anybody for anything.
pub(crate) fn look_up(names: &[String]) -> Found {
    if names.is_empty() {
        return Found::default();
    }
    let looked = within(SHORT, async {
        let keyring = Keyring::open().await?;
        let mut found = Found::default();
        for name in names {
            found.add(name, keyring.key((PROVIDER, name)).await);
        }
        Ok(found)
    });
    looked.unwrap_or_else(|trouble| Found::nothing(names, &trouble))
}

/// Fetches the key that other keys are encrypted with, without asking anybody for anything.
pub(crate) fn vault_key(name: &str) -> Result<String, Trouble> {
    within(SHORT, async { Keyring::open().await?.key((VAULT, name)).await })
}

/// Puts such a key there, if that can be done without asking anybody.
pub(crate) fn set_vault_key(name: &str, key: &str) -> Result<(), Trouble> {
    within(SHORT, async {
        let keyring = Keyring::open().await?;
        let collection = keyring.service.get_default_collection().await?;
        if collection.is_locked().await? {
            return Err(Trouble::Locked);
        }
        let marks = HashMap::from([OURS, (VAULT, name)]);
        let label = "Quintet: what users' keys are encrypted with";
        collection.create_item(label, marks, key.as_bytes(), true, "text/plain").await?;
        Ok(())
    })
}

/// Whether there is a keyring at all.
pub(crate) fn reach() -> Result<(), Trouble> {
    within(LONG, async { Keyring::open().await.map(|_| ()) })
}

/// Puts a key there, in place of what was there under this name.
pub(crate) fn set(name: &str, key: &str) -> Result<(), Trouble> {
    within(LONG, async { Keyring::open().await?.set(name, key).await })
}

/// Removes a key; says whether there was one.
pub(crate) fn forget(name: &str) -> Result<bool, Trouble> {
    within(LONG, async { Keyring::open().await?.forget(name).await })
}

/// The names of all keys of ours, and whether each is locked.
pub(crate) fn list(recorded: &[String]) -> Result<BTreeMap<String, bool>, Trouble> {
    within(LONG, async { Keyring::open().await?.list(recorded).await })
}

/// Runs on a runtime of its own, which is left behind if it hangs.
fn within<T>(
    patience: Duration,
    work: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Trouble::Other(error.to_string()))?;
    let done = runtime.block_on(async { timeout(patience, work).await });
    runtime.shutdown_background();
    done.unwrap_or(Err(Trouble::Silent))
}

struct Keyring {
    service: SecretService<'static>,
}

impl Keyring {
    /// What goes over the bus is encrypted, so that whoever records it records no keys.
    async fn open() -> Result<Self, Trouble> {
        let service = SecretService::connect(EncryptionType::Dh).await;
        Ok(Self { service: service.map_err(Trouble::absent)? })
    }

    async fn key(&self, mark: (&str, &str)) -> Result<String, Trouble> {
        let items = self.items(mark).await?;
        let Some(item) = items.unlocked.first() else {
            return Err(if items.locked.is_empty() { Trouble::Missing } else { Trouble::Locked });
        };
        let key = String::from_utf8(item.get_secret().await?);
        let key = key.map_err(|_| Trouble::Other("what is there is not text".into()))?;
        Ok(key.trim_end().to_owned())
    }

    async fn set(&self, name: &str, key: &str) -> Result<(), Trouble> {
        let collection = self.collection().await?;
        if collection.is_locked().await? {
            collection.unlock().await?;
        }
        let label = format!("Quintet: key for {name}");
        let marks = HashMap::from([OURS, (PROVIDER, name)]);
        collection.create_item(&label, marks, key.as_bytes(), true, "text/plain").await?;
        Ok(())
    }

    /// The one that the user made the default; never the one that lasts as long as the session.
    async fn collection(&self) -> Result<Collection<'_>, Trouble> {
        match self.service.get_default_collection().await {
            Err(Error::NoResult) => Ok(self.service.create_collection("Login", "default").await?),
            given => Ok(given?),
        }
    }

    async fn forget(&self, name: &str) -> Result<bool, Trouble> {
        let items = self.items((PROVIDER, name)).await?;
        for item in &items.locked {
            item.unlock().await?;
        }
        for item in items.locked.iter().chain(&items.unlocked) {
            item.delete().await?;
        }
        Ok(!items.locked.is_empty() || !items.unlocked.is_empty())
    }

    /// A locked key may hide its name, so those that we know are asked for one by one.
    async fn list(&self, recorded: &[String]) -> Result<BTreeMap<String, bool>, Trouble> {
        let mut names = BTreeMap::new();
        for item in &self.service.search_items(HashMap::from([OURS])).await?.unlocked {
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
    ) -> Result<SearchItemsResult<secret_service::Item<'_>>, Trouble> {
        Ok(self.service.search_items(HashMap::from([OURS, mark])).await?)
    }
}
