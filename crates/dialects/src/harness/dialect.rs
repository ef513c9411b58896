//! Declares the harness: its listener, its options, and the session tree on disk.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::try_join_all;
use quintet_kernel::port::{ERASED_SPACE, Preferences, StorageError};
use serde_json::Value;

use super::serve::{Settings, refuse, router};
use super::tree::Tree;
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape, Task, Variable,
};
use crate::projection::{self, Sources};
use crate::transport::access::Token;

/// The coding harness.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "harness",
    listeners: &[ListenerSpec {
        required: true,
        ..ListenerSpec::http("harness", "127.0.0.1:8787")
    }],
    options: &[
        ("harness.auth_token", Shape::Secret, None),
        ("harness.hosts", Shape::List, Some("[]")),
        ("harness.session_tree", Shape::Flag, None),
    ],
    variables: &[Variable { name: "HARNESS_AUTH_TOKEN", key: "harness.auth_token", prefix: "" }],
    configure,
};

#[derive(Debug)]
struct Harness {
    default_model: String,
    token: Option<Token>,
    hosts: Vec<String>,
    /// The folder of the session tree.
    tree_root: PathBuf,
    /// True if the session tree is written.
    writes_tree: bool,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    Ok(Box::new(Harness::new(config)))
}

impl Harness {
    fn new(config: &Config<'_>) -> Self {
        let is_on = config.address("harness").is_some();
        Self {
            default_model: config.default_model.to_string(),
            token: config.token("harness.auth_token"),
            hosts: config.list("harness.hosts"),
            tree_root: config.data_dir.join("sessions"),
            writes_tree: config.values.flag("harness.session_tree").unwrap_or(is_on),
        }
    }

    /// Clears the list of erased sessions, unless an older session tree may still have them.
    fn clear_erased(&self, services: &Services) -> impl Future<Output = ()> + Send + 'static {
        let (is_needed, preferences) =
            (self.tree_root.exists(), Arc::clone(&services.stored_preferences));
        let parked = services.sessions_parked.clone();
        async move {
            if !is_needed && let Err(error) = clear(&*preferences).await {
                tracing::warn!(%error, "the list of erased sessions was not cleared");
            }
            parked.cancelled().await;
        }
    }
}

impl Protocol for Harness {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let tree = self.writes_tree.then(|| {
            let (sessions, archive) =
                (Arc::clone(&services.sessions), Arc::clone(&services.archive));
            Tree::new(self.tree_root.clone(), Arc::clone(&services.blobs), sessions, archive)
        });
        let background = match tree.clone() {
            Some(tree) => ("the session tree", Task::new(tree_task(tree, services))),
            None => ("the list of erased sessions", Task::new(self.clear_erased(services))),
        };
        let settings = Settings { default_model: self.default_model.clone() };
        let access = AccessRules::new(self.hosts.clone(), refuse);
        let service = Service::Http {
            router: router(Arc::clone(services), tree, settings),
            access: AccessRules { token: self.token.clone(), ..access },
        };
        ServedProtocol {
            endpoints: vec![Endpoint { listener: "harness", service }],
            background: vec![background],
        }
    }
}

async fn clear(preferences: &dyn Preferences) -> Result<(), StorageError> {
    let names = preferences.names(ERASED_SPACE).await?;
    try_join_all(
        names.iter().map(|name| preferences.set_preference(ERASED_SPACE, name, Value::Null)),
    )
    .await?;
    Ok(())
}

fn tree_task(tree: Tree, services: &Services) -> impl Future<Output = ()> + Send + 'static {
    let sources = Sources {
        changes: services.change_feed.subscribe(),
        sessions: Arc::clone(&services.sessions),
        clock: Arc::clone(&services.clock),
        stop: services.sessions_parked.clone(),
    };
    let preferences = Arc::clone(&services.stored_preferences);
    async move { projection::run(tree.projection(preferences).await, sources).await }
}

#[cfg(test)]
mod tests;
