//! Records the changes of a tool that runs commands, by comparing a snapshot of the workspace before the
//! call with one after it.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolSpec};
use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

use super::git_objects::tracked;
use super::store::{Base, WorkspaceSnapshots, lock};
use super::{Record, Undo, Unrecorded};
use crate::blocking::{self, CancelFlag};

/// How many unrecorded places of a call the model is told.
const TOLD_LIMIT: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    undo: Undo,
}

/// A workspace before a call.
struct Before {
    /// The real path.
    root: PathBuf,
    workspace: Arc<WorkspaceSnapshots>,
    base: Base,
}

impl Undo {
    /// Takes the snapshot before a command.
    fn before(
        &self,
        call: &Invocation,
    ) -> impl FnOnce(&CancelFlag) -> Result<Before, Unrecorded> + use<> {
        let (undo, root, turn) = (self.clone(), call.workspace.clone(), call.turn.clone());
        let (entry, runtime) = (self.log.path(&call.turn, &call.call), Handle::current());
        move |cancel| {
            let root = root.canonicalize().map_err(Unrecorded::Workspace)?;
            let workspace = undo.snapshots.workspace(&root)?;
            // A failed scan may have read a lot, so it is not repeated in the same turn.
            if let Some((_, why)) = lock(&workspace.failure).as_ref().filter(|it| it.0 == turn) {
                return Err(Unrecorded::EarlierInTurn(why.clone()));
            }
            let tracked = || runtime.block_on(tracked(&undo.runner, &root));
            let base = workspace.before(&root, tracked, cancel, entry.as_deref());
            let failed =
                |why: &Unrecorded| *lock(&workspace.failure) = Some((turn, why.to_string()));
            Ok(Before { base: base.inspect_err(failed)?, root, workspace })
        }
    }
}

/// Adds changes to the result of a call. The model, too, is told what is not recorded.
fn report(record: Result<Record, Unrecorded>, output: &mut ToolOutput) {
    let Record { changes, unrecorded } = record.unwrap_or_else(nothing);
    let mut told: Vec<_> = unrecorded.iter().filter_map(describe).collect();
    let more = told.len().saturating_sub(TOLD_LIMIT);
    told.truncate(TOLD_LIMIT);
    told.extend((more > 0).then(|| format!("and {more} more")));
    if !told.is_empty() {
        let text = format!("\n[not recorded for an undo: {}]", told.join(", "));
        output.outcome.parts.push(Part::Text(text));
    }
    output.changes.extend(changes);
    output.outcome.unrecorded.extend(unrecorded);
}

/// The record of a command whose changes are unknown.
pub(super) fn nothing(why: Unrecorded) -> Record {
    let all = UnrecordedChange { path: String::new(), paths: None, reason: why.to_string() };
    Record { changes: Vec::new(), unrecorded: vec![all] }
}

/// Names an unrecorded change, unless there may be none.
fn describe(UnrecordedChange { path, paths, reason }: &UnrecordedChange) -> Option<String> {
    match paths {
        Some(1) => Some(format!("{path} ({reason})")),
        Some(paths) => Some(format!("{paths} paths at {path} ({reason})")),
        None => path.is_empty().then(|| reason.clone()),
    }
}

/// The changes since a snapshot. This cannot be cancelled: a cancelled command is recorded, too.
async fn since(
    before: Result<Result<Before, Unrecorded>, JoinError>,
) -> Result<Record, Unrecorded> {
    let Before { root, workspace, base } = before??;
    spawn_blocking(move || workspace.since(&root, &base)).await?
}

impl<T: Tool> Recorded<T> {
    pub(crate) fn new(tool: T, undo: Undo) -> Self {
        Self { tool, undo }
    }

    async fn record(&self, call: Invocation, context: ToolContext) -> ToolOutput {
        let before = self.undo.before(&call);
        let Some(before) = blocking::until_cancelled(&context, before).await else {
            return Outcome::ended(Ending::Cancelled, "cancelled").into();
        };
        let mut output = self.tool.run(call, context).await;
        report(since(before).await, &mut output);
        output
    }
}

impl<T: Tool> Tool for Recorded<T> {
    fn spec(&self) -> Arc<ToolSpec> {
        self.tool.spec()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        self.tool.assess(call)
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(self.record(call, context))
    }
}
