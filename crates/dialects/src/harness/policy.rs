//! The model policy: the models that users of this protocol prefer.
//!
//! The original server chooses a model by this policy for every turn. Here the first preferred model is
//! used if neither the message nor the session names one; the other fields are only stored for clients.

use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::model::ModelRef;
use quintet_kernel::port::{Preferences, StorageError};
use serde::{Deserialize, Serialize};

use super::decode::Reply;

/// The preference that stores the policy.
const SPACE: &str = "harness";
const NAME: &str = "model_policy";

/// A policy, as clients send and receive it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Policy {
    pub(super) require_tools: bool,
    pub(super) require_vision: bool,
    pub(super) max_cost_usd: Option<f64>,
    pub(super) preferred_models: Vec<String>,
}

impl Policy {
    /// Parses a policy. Models may be written as in the original server, `provider:model`. Fails with the
    /// reply if the body is invalid.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Reply> {
        let mut policy: Self =
            serde_json::from_slice(body).map_err(|_| Reply::new(400, "invalid json"))?;
        for name in &mut policy.preferred_models {
            let model = if name.contains('/') { name.clone() } else { name.replacen(':', "/", 1) };
            let wrong = || Reply::new(400, format!("model must be provider/model, not \"{name}\""));
            *name = ModelRef::parse(&model).ok_or_else(wrong)?.to_string();
        }
        Ok(policy)
    }

    /// The most preferred model.
    fn preferred_model(&self) -> Option<ModelRef> {
        self.preferred_models.first().and_then(|name| ModelRef::parse(name))
    }

    /// The policy, with the default model if it has none.
    pub(super) fn or_default(mut self, model: &str) -> Self {
        self.max_cost_usd.get_or_insert(0.0);
        if self.preferred_models.is_empty() {
            self.preferred_models.push(model.to_owned());
        }
        self
    }
}

/// The stored policy.
#[derive(Clone)]
pub(super) struct PolicyStore {
    store: Arc<dyn Preferences>,
    /// The policy that was last read or written.
    cached: Arc<Mutex<Option<Policy>>>,
}

impl PolicyStore {
    pub(super) fn new(store: Arc<dyn Preferences>) -> Self {
        Self { store, cached: Arc::default() }
    }

    pub(super) async fn current(&self) -> Result<Policy, StorageError> {
        let cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(policy) = cached {
            return Ok(policy);
        }
        let stored = self.store.preference(SPACE, NAME).await?;
        let stored = stored.and_then(|value| serde_json::from_value::<Policy>(value).ok());
        // Another request may have set a policy while this one was read.
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cached.get_or_insert(stored.unwrap_or_default()).clone())
    }

    pub(super) async fn set(&self, policy: Policy) -> Result<(), StorageError> {
        let value = serde_json::to_value(&policy).expect("our own types serialize");
        self.store.set_preference(SPACE, NAME, value).await?;
        self.set_cached(policy);
        Ok(())
    }

    /// The most preferred model.
    pub(super) async fn preferred_model(&self) -> Result<Option<ModelRef>, StorageError> {
        Ok(self.current().await?.preferred_model())
    }

    fn set_cached(&self, policy: Policy) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(policy);
    }
}
