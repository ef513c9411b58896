//! The list of usable models, without waiting for slow providers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::model::ModelInfo;
use quintet_kernel::port::Models;

/// Time that a response waits for the lists of providers.
const LISTING_TIMEOUT: Duration = Duration::from_millis(40);

/// The usable models, cached.
pub(crate) struct ModelList {
    models: Arc<dyn Models>,
    known: Mutex<Option<Vec<ModelInfo>>>,
}

impl ModelList {
    pub(crate) fn new(models: Arc<dyn Models>) -> Self {
        Self { models, known: Mutex::default() }
    }

    /// The usable models; empty if they were never listed.
    pub(crate) async fn usable(&self) -> Vec<ModelInfo> {
        self.if_known().await.unwrap_or_default()
    }

    /// The usable models; `None` if they were never listed.
    pub(crate) async fn if_known(&self) -> Option<Vec<ModelInfo>> {
        match tokio::time::timeout(LISTING_TIMEOUT, self.refresh()).await {
            Ok(models) => Some(models),
            Err(_) => self.known.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Fetches the list and waits for it.
    pub(crate) async fn refresh(&self) -> Vec<ModelInfo> {
        let mut models = self.models.list().await;
        models.retain(|listed| listed.usable);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(models.clone());
        models
    }
}
