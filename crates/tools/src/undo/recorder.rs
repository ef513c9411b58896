//! A tool that runs commands, with a record of what they do to files: the difference of a snapshot of
//! the workspace before and one after.

use std::sync::Arc;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolSpec};
use tokio::task::spawn_blocking;

use super::git_objects::Tracked;
use super::store::{Base, Mentioned, Workspace};
use super::{Record, Undo, Unrecorded, everywhere};
use crate::blocking::CancelFlag;
use crate::{blocking, repository, show};

/// How many paths are named that are not recorded.
const NAMED_LIMIT: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    undo: Undo,
}

impl Undo {
    /// Takes the snapshot before a command.
    async fn before(
        &self,
        workspace: &Arc<Workspace>,
        call: &Invocation,
        context: &ToolContext,
    ) -> Result<Base, Unrecorded> {
        let this = workspace.clone();
        let tracked = match until_cancelled(context, move |_| this.prepare()).await? {
            Some(at) if repository::is_around(&workspace.root) => {
                Tracked::ask(&self.runner, &workspace.root, at).await
            }
            Some(_) | None => Tracked::default(),
        };
        let (this, note) = (workspace.clone(), self.notes.path(&call.turn, &call.call));
        let take = move |flag: &CancelFlag| this.take(&tracked, flag, note.as_deref());
        until_cancelled(context, take).await
    }
}

/// Finds out what a command did. This is not cancelled: it is to be known of a cancelled one, too.
async fn after(workspace: Arc<Workspace>, base: Base) -> Result<Record, Unrecorded> {
    let looking = spawn_blocking(move || workspace.since(&base));
    looking.await.unwrap_or_else(|error| Err(Unrecorded::Workspace(error.to_string())))
}

async fn until_cancelled<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&CancelFlag) -> Result<T, Unrecorded> + Send + 'static,
) -> Result<T, Unrecorded> {
    match blocking::until_cancelled(context, work).await {
        Some(Ok(done)) => done,
        Some(Err(error)) => Err(Unrecorded::Workspace(error.to_string())),
        None => Err(Unrecorded::Cancelled),
    }
}

impl<T: Tool> Recorded<T> {
    pub(crate) fn new(tool: T, undo: Undo) -> Self {
        Self { tool, undo }
    }

    async fn record(&self, call: Invocation, context: ToolContext) -> ToolOutput {
        let (snapshots, root) = (self.undo.snapshots.clone(), call.workspace.clone());
        let found = spawn_blocking(move || snapshots.workspace(&root)).await;
        let Ok(Some(workspace)) = found else { return self.tool.run(call, context).await };
        let turn = call.turn.clone();
        let known = workspace.mentioned(&turn).trouble.clone();
        let base = match known {
            Some(trouble) => Err(trouble),
            None => match self.undo.before(&workspace, &call, &context).await {
                Err(Unrecorded::Cancelled) => {
                    return Outcome::ended(Ending::Cancelled, "cancelled").into();
                }
                base => base.map_err(|why| why.to_string()),
            },
        };
        let mut output = self.tool.run(call, context).await;
        let record = match base {
            Ok(base) => after(workspace.clone(), base).await.map_err(|why| why.to_string()),
            Err(trouble) => Err(trouble),
        };
        let mut mentioned = workspace.mentioned(&turn);
        match record {
            Ok(Record { changes, unrecorded }) => {
                name(&mut output, &unrecorded, &mut mentioned);
                output.changes.extend(changes);
                output.outcome.unrecorded.extend(unrecorded);
            }
            // There is no need to try again in this turn.
            Err(trouble) => {
                if mentioned.trouble.replace(trouble.clone()).is_none() {
                    let text =
                        "what commands do to files is not recorded here and cannot be undone";
                    note(&mut output, &format!("{text}: {trouble}"));
                }
                output.outcome.unrecorded.push(everywhere(trouble));
            }
        }
        output
    }
}

/// Names paths that are not recorded, to the model, once a turn.
fn name(output: &mut ToolOutput, gaps: &[UnrecordedChange], mentioned: &mut Mentioned) {
    let known = gaps.iter().filter_map(|gap| Some((gap, gap.paths?)));
    let new: Vec<_> = known.filter(|(gap, _)| mentioned.paths.insert(gap.path.clone())).collect();
    let one = |(gap, paths): &(&UnrecordedChange, u64)| {
        let paths = show::count(usize::try_from(*paths).unwrap_or(usize::MAX), "path");
        format!("{paths} at {} ({})", if gap.path.is_empty() { "." } else { &gap.path }, gap.reason)
    };
    let list: Vec<_> = new.iter().take(NAMED_LIMIT).map(one).collect();
    let more = new.len().saturating_sub(NAMED_LIMIT);
    let more = if more > 0 { format!(" and at {more} more places") } else { String::new() };
    if !list.is_empty() {
        note(output, &format!("not recorded for an undo: {}{more}", list.join(", ")));
    }
}

fn note(output: &mut ToolOutput, text: &str) {
    output.outcome.parts.push(Part::Text(format!("\n[{text}]")));
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
