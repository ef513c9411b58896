//! Settings of one node in the shared store, such as the position of its audit log.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Preferences, StorageError};
use serde_json::Value;

/// The settings of a store, in spaces of one node.
pub(super) struct NodeSettings {
    pub(super) settings: Arc<dyn Preferences>,
    pub(super) node: String,
}

impl NodeSettings {
    fn space(&self, space: &str) -> String {
        format!("{space}@{}", self.node)
    }
}

impl Preferences for NodeSettings {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        self.settings.preference(&self.space(space), name)
    }

    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        self.settings.names(&self.space(space))
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        self.settings.set_preference(&self.space(space), name, value)
    }

    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        self.settings.replace(&self.space(space), name, expected, value)
    }
}
