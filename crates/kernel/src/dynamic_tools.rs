//! Tools that come and go while the daemon runs, as a session sees them at one moment.

use std::sync::Arc;

use crate::tool::ToolSpec;

/// The tools of a session that are not fixed by the configuration. Not part of the journal: the runtime
/// supplies them before each decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DynamicTools {
    /// Tools that models are offered, in a stable order.
    pub listed: Vec<Arc<ToolSpec>>,
    /// Tools that can be called by name, but take no room in prompts.
    pub unlisted: Vec<Arc<ToolSpec>>,
}

impl DynamicTools {
    /// All tools, listed or not.
    pub fn all(&self) -> impl Iterator<Item = &Arc<ToolSpec>> {
        self.listed.iter().chain(&self.unlisted)
    }

    /// The tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.all().find(|tool| tool.name == name)
    }
}
