//! What the runtime is built from.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::event::Record;
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::Rules;
use quintet_kernel::port::{
    Blobs, Clock, Drafts, Journal, Leases, Memory, Models, SessionIndex, SessionObserver, Tool,
    ToolSource, Workspaces,
};
use quintet_kernel::session::handle;
use quintet_kernel::{Refusal, Stamp, State};

use crate::cluster::Cluster;

/// The adapters and rules that all sessions share.
#[derive(Clone)]
pub struct RuntimeDeps {
    /// Where events are kept.
    pub journal: Arc<dyn Journal>,
    /// The right to write them.
    pub leases: Arc<dyn Leases>,
    /// The list of sessions.
    pub session_index: Arc<dyn SessionIndex>,
    /// Where text in flight is kept.
    pub drafts: Arc<dyn Drafts>,
    /// Where files are kept.
    pub blobs: Arc<dyn Blobs>,
    /// Where what files were is kept, for as long as there is room.
    pub undo: Arc<dyn Blobs>,
    /// The models.
    pub models: Arc<dyn Models>,
    /// What can be run here, by name.
    pub tools: HashMap<String, Arc<dyn Tool>>,
    /// What can be run here and may change, where there is such a source.
    pub tool_source: Option<Arc<dyn ToolSource>>,
    /// Where sessions work.
    pub workspaces: Arc<dyn Workspaces>,
    /// What is remembered beyond sessions, where it is on.
    pub memory: Option<Arc<dyn Memory>>,
    /// Time and chance.
    pub clock: Arc<dyn Clock>,
    /// What is allowed.
    pub rules: Arc<Rules>,
    /// Listeners that are told of new events.
    pub observers: Vec<Arc<dyn SessionObserver>>,
    /// The other nodes of the store, where there may be some.
    pub cluster: Option<Cluster>,
    /// How patient to be.
    pub timing: Timing,
}

impl RuntimeDeps {
    /// Has the kernel decide, with what is known of models and tools now.
    pub(crate) fn handle(
        &self,
        state: &mut State,
        command: Command,
        stamp: &Stamp,
    ) -> Result<Vec<Arc<Record>>, Refusal> {
        self.refresh_models(state, &command);
        self.refresh_tools(state);
        handle(state, command, stamp)
    }

    /// Hands a session the tools that come and go, as they are now.
    pub(crate) fn refresh_tools(&self, state: &mut State) {
        if let Some(source) = &self.tool_source {
            state.set_dynamic_tools(source.tools(&state.id, &state.workspace));
        }
    }

    /// The tool of that name that runs here, if the session has it.
    pub(crate) fn tool(&self, state: &State, name: &str) -> Option<Arc<dyn Tool>> {
        let changing = || self.tool_source.as_ref()?.find(&state.id, &state.workspace, name);
        self.tools.get(name).cloned().or_else(changing)
    }

    /// Hands a session what is known of the models that a decision may be about.
    pub(crate) fn refresh_models(&self, state: &mut State, command: &Command) {
        let known = |model: ModelRef| Some((model.clone(), self.models.profile(&model)?));
        let profiles = state.models_for(command).into_iter().filter_map(known).collect();
        state.set_profiles(profiles);
    }
}

impl fmt::Debug for RuntimeDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// How patient to be.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Text in flight is made durable after this long. Its draft outlives the process, so this bounds
    /// what a power loss can take; shorter is dear, because storage writes whole pages.
    pub flush_after: Duration,
    /// The same where the draft cannot be written: followers see the text only once it is durable.
    pub flush_undrafted_after: Duration,
    /// Text in flight is made durable when there is this much of it, in bytes.
    pub flush_bytes: usize,
    /// A session with nothing to do leaves memory after this long,
    pub hibernate_after: Duration,
    /// or when all such sessions take more than this and it is the one that was used longest ago.
    pub idle_bytes: usize,
    /// A tool that was told to stop is given up after this long.
    pub stop_within: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            flush_after: Duration::from_secs(5),
            flush_undrafted_after: Duration::from_millis(100),
            flush_bytes: 16 * 1024,
            hibernate_after: Duration::from_secs(600),
            idle_bytes: 8 * 1024 * 1024,
            stop_within: Duration::from_secs(5),
        }
    }
}
