//! The dependencies of the runtime.

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

/// The adapters, rules and timing that all sessions share.
#[derive(Clone)]
pub struct RuntimeDeps {
    /// Stores events.
    pub journal: Arc<dyn Journal>,
    /// Grants the right to write events.
    pub leases: Arc<dyn Leases>,
    /// Stores session summaries.
    pub session_index: Arc<dyn SessionIndex>,
    /// Stores streamed text that is not in the journal yet.
    pub drafts: Arc<dyn Drafts>,
    /// Stores files.
    pub blobs: Arc<dyn Blobs>,
    /// Stores earlier versions of changed files, within a size limit.
    pub undo: Arc<dyn Blobs>,
    /// Calls models.
    pub models: Arc<dyn Models>,
    /// The tools that run in the daemon, by name.
    pub tools: HashMap<String, Arc<dyn Tool>>,
    /// Tools that may change while the daemon runs.
    pub tool_source: Option<Arc<dyn ToolSource>>,
    /// Describes, compares and restores workspaces.
    pub workspaces: Arc<dyn Workspaces>,
    /// Notes that outlive sessions, if memory is enabled.
    pub memory: Option<Arc<dyn Memory>>,
    /// The time and random numbers.
    pub clock: Arc<dyn Clock>,
    /// Approvals, limits and verification.
    pub rules: Arc<Rules>,
    /// Notified of durable events.
    pub observers: Vec<Arc<dyn SessionObserver>>,
    /// The other nodes of the store, if it is shared.
    pub cluster: Option<Cluster>,
    /// Intervals and limits of the runtime.
    pub timing: Timing,
}

impl RuntimeDeps {
    /// Decides a command with the current models and tools.
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

    /// Passes the current dynamic tools to a session.
    pub(crate) fn refresh_tools(&self, state: &mut State) {
        if let Some(source) = &self.tool_source {
            state.set_dynamic_tools(source.tools(&state.id, &state.workspace));
        }
    }

    /// The daemon's tool of that name, if the session has it.
    pub(crate) fn tool(&self, state: &State, name: &str) -> Option<Arc<dyn Tool>> {
        let changing = || self.tool_source.as_ref()?.find(&state.id, &state.workspace, name);
        self.tools.get(name).cloned().or_else(changing)
    }

    /// Passes the profiles of the models that a decision may need to a session.
    pub(crate) fn refresh_models(&self, state: &mut State, command: &Command) {
        let known = |model: ModelRef| Some((model.clone(), self.models.profile(&model)?));
        let profiles = state.models_for(command).into_iter().filter_map(known).collect();
        state.set_profiles(profiles);
    }
}

impl fmt::Debug for RuntimeDeps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeDeps").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Intervals and limits of the runtime.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Time after which streamed text is appended to the journal. Its draft survives the
    /// process, so this bounds only what a power loss can lose; short intervals are costly,
    /// because storage writes whole pages.
    pub flush_after: Duration,
    /// The same if the draft cannot be written: then followers see text only once it is
    /// durable.
    pub flush_undrafted_after: Duration,
    /// Bytes of streamed text that are appended to the journal at once.
    pub flush_bytes: usize,
    /// Time after which an idle session leaves memory.
    pub hibernate_after: Duration,
    /// Bytes that all idle sessions may use; beyond that the least recently used ones leave
    /// memory.
    pub idle_bytes: usize,
    /// Time that a cancelled tool has to stop before it is abandoned.
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
