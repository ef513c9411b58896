//! What users of front ends pay providers with, looked up when a model is asked.

use std::fmt;
use std::sync::Arc;

use quintet_dialects::windie;
use quintet_kernel::model::Account;
use quintet_kernel::port::{BoxFuture, Preferences};
use quintet_providers::{Accounts, Secret};

/// Keys among the settings of users.
pub(crate) struct UserKeys(pub(crate) Arc<dyn Preferences>);

impl Accounts for UserKeys {
    fn key<'a>(
        &'a self,
        account: &'a Account,
        provider: [&'a str; 2],
    ) -> BoxFuture<'a, Option<Secret>> {
        Box::pin(async move {
            let kept = self.0.preference(&account.space, &account.name).await;
            let kept = kept.unwrap_or_else(|error| {
                tracing::warn!(%error, "a user's keys cannot be read, so the daemon's are used");
                None
            });
            windie::own_key(kept?, &provider).map(Secret::new)
        })
    }
}

impl fmt::Debug for UserKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserKeys")
    }
}
