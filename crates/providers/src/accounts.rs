//! People who ask models with means of their own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::model::{Account, Failure};
use quintet_kernel::port::BoxFuture;

use crate::config::{ProviderConfig, Secret};

/// Looks up the keys that users pay providers with.
pub trait Accounts: fmt::Debug + Send + Sync {
    /// What somebody pays a provider with, as it is now; nothing if the daemon pays. A provider is
    /// known by its name and by that of its vendor. Where it cannot be found out who pays, the reason:
    /// nobody is asked then, because somebody else would pay for it.
    fn key<'a>(
        &'a self,
        account: &'a Account,
        provider: [&'a str; 2],
    ) -> BoxFuture<'a, Result<Option<Secret>, String>>;
}

/// A user who may pay for a call.
#[derive(Clone)]
pub(crate) struct Payer {
    accounts: Arc<dyn Accounts>,
    account: Account,
    /// What was last paid with, so that no message gives it away.
    paid: Arc<Mutex<Option<Secret>>>,
}

impl Payer {
    pub(crate) fn new(accounts: Arc<dyn Accounts>, account: Account) -> Self {
        Self { accounts, account, paid: Arc::default() }
    }

    /// What is paid with now.
    pub(crate) async fn key(&self, provider: &ProviderConfig) -> Result<Option<Secret>, String> {
        let names = [provider.name.as_str(), provider.vendor.as_str()];
        let key = self.accounts.key(&self.account, names).await?;
        self.paid.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&key);
        Ok(key)
    }

    /// A failure that does not give the key away.
    pub(crate) fn redacted(&self, mut failure: Failure) -> Failure {
        let paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(key) = paid {
            failure.message = key.redact(failure.message);
        }
        failure
    }
}
