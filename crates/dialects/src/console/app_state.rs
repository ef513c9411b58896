//! The services and settings that requests of the console use.

use std::sync::Arc;

use super::usage::UsageCache;
use crate::dialect::Services;

/// The daemon's services, and what the console adds to them.
#[derive(Clone)]
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) usage: UsageCache,
    pub(super) default_model: Arc<str>,
    /// The time at which the daemon started, in microseconds.
    pub(super) boot: i64,
}

impl AppState {
    pub(super) fn new(services: &Arc<Services>, default_model: String) -> Self {
        Self {
            services: Arc::clone(services),
            usage: UsageCache::default(),
            default_model: default_model.into(),
            boot: services.clock.now().micros(),
        }
    }
}
