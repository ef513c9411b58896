//! API keys of users who pay for their own model calls.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::model::{Account, Failure};
use quintet_kernel::port::BoxFuture;

use crate::config::{ProviderConfig, Secret};

/// Looks up the API keys of users.
pub trait Accounts: fmt::Debug + Send + Sync {
    /// The user's current key for a provider; `None` if the daemon's key is used. A provider is
    /// identified by its name and by its vendor's name. Fails with the reason if the key cannot be
    /// looked up: then no model is called, because the wrong account would be charged.
    fn key<'a>(
        &'a self,
        account: &'a Account,
        provider: [&'a str; 2],
    ) -> BoxFuture<'a, Result<Option<Secret>, String>>;
}

/// The source of a call's API key: a user's account.
#[derive(Clone)]
pub(crate) struct KeySource {
    accounts: Arc<dyn Accounts>,
    account: Account,
    /// The key that was used last, so that it can be redacted from messages.
    last_key: Arc<Mutex<Option<Secret>>>,
}

impl KeySource {
    pub(crate) fn new(accounts: Arc<dyn Accounts>, account: Account) -> Self {
        Self { accounts, account, last_key: Arc::default() }
    }

    /// The current key; `None` if the daemon's key is used. Fails with the reason if it cannot be looked up.
    pub(crate) async fn key(&self, provider: &ProviderConfig) -> Result<Option<Secret>, String> {
        let names = [provider.name.as_str(), provider.vendor.as_str()];
        let key = self.accounts.key(&self.account, names).await?;
        self.last_key.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&key);
        Ok(key)
    }

    /// The failure with the key redacted.
    pub(crate) fn redacted(&self, mut failure: Failure) -> Failure {
        let last_key = self.last_key.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(key) = last_key {
            failure.message = key.redact(failure.message);
        }
        failure
    }
}
