//! Caches the list of models that a provider offers.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reqwest::Response;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::endpoint::Endpoint;

/// Time to wait for a list.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
/// Time for which a list is used.
const LIST_LIFETIME: Duration = Duration::from_secs(60);
/// Time after a failure before the list is requested again.
const FAILURE_LIFETIME: Duration = Duration::from_secs(5);
/// Bytes of a list.
const LIST_BYTES_LIMIT: usize = 8 << 20;

/// A model that a provider lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedModel {
    /// The provider's name for the model.
    pub(crate) id: String,
    /// The name for people.
    pub(crate) label: Option<String>,
    /// The context window in tokens.
    pub(crate) context_window: Option<u64>,
    /// Tokens of one answer.
    pub(crate) max_output: Option<u64>,
}

/// The last received list of a provider's models.
#[derive(Debug, Default)]
pub(crate) struct ModelListCache {
    /// The time until which the list is used. Locked during a request, so that concurrent callers send one.
    until: Mutex<Option<Instant>>,
    cached: RwLock<ModelList>,
}

/// The result of the last request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelList {
    pub(crate) models: Arc<[ListedModel]>,
    pub(crate) reachability: Reachability,
}

/// Whether a provider answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reachability {
    /// The provider did not answer.
    #[default]
    Unreachable,
    /// The provider refuses the key.
    KeyRefused,
    /// The provider answered, perhaps without a list.
    Reachable,
}

impl ModelListCache {
    /// The cached list, without a request.
    pub(crate) fn cached(&self) -> ModelList {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A model of the cached list.
    pub(crate) fn find(&self, id: &str) -> Option<ListedModel> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        cached.models.iter().find(|found| found.id == id).cloned()
    }

    /// The list, requested again if it is old. Without an answer the old list stays.
    pub(crate) async fn refresh(&self, endpoint: &Endpoint) -> ModelList {
        let mut until = self.until.lock().await;
        if until.is_none_or(|until| Instant::now() >= until) {
            let asked = timeout(LIST_TIMEOUT, refresh(endpoint)).await.ok().flatten();
            let (reachability, models) = asked.unwrap_or((Reachability::Unreachable, None));
            let fresh = if models.is_some() { LIST_LIFETIME } else { FAILURE_LIFETIME };
            *until = Some(Instant::now() + fresh);
            let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
            cached.reachability = reachability;
            if let Some(models) = models {
                cached.models = models.into();
            }
        }
        drop(until);
        self.cached()
    }
}

async fn refresh(endpoint: &Endpoint) -> Option<(Reachability, Option<Vec<ListedModel>>)> {
    let request = endpoint.client().await.ok()?.get(endpoint.url(endpoint.family.list_path()));
    let response =
        endpoint.sign(request, endpoint.config.api_key.as_ref()).ok()?.send().await.ok()?;
    match response.status().as_u16() {
        200 => {
            let body = read(response).await?;
            Some((Reachability::Reachable, endpoint.family.listed(&body)))
        }
        401 | 403 => Some((Reachability::KeyRefused, None)),
        _ => Some((Reachability::Reachable, None)),
    }
}

async fn read(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        body.extend_from_slice(&bytes);
        if body.len() > LIST_BYTES_LIMIT {
            return None;
        }
    }
    Some(body)
}
