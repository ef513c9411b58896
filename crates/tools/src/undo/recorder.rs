//! A tool that runs commands, with a record of what they do to files: the difference of a snapshot of
//! the workspace before and one after.

use std::sync::Arc;

use quintet_kernel::TurnId;
use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolSpec};
use tokio::task::spawn_blocking;

use super::git_objects::Tracked;
use super::notes::Notes;
use super::store::{Base, Snapshots, Workspace};
use super::{Record, Unrecorded};
use crate::blocking::CancelFlag;
use crate::run::Runner;
use crate::{blocking, repository, show};

/// How many paths are named that are not recorded.
const NAMED_LIMIT: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    recorder: Recorder,
}

/// How what commands do is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    runner: Arc<Runner>,
    snapshots: Arc<Snapshots>,
    notes: Arc<Notes>,
}

impl Recorder {
    /// Asks git by this runner; notes what commands began with, for the case of a crash.
    pub(crate) fn new(runner: Arc<Runner>, snapshots: Arc<Snapshots>, notes: Arc<Notes>) -> Self {
        Self { runner, snapshots, notes }
    }

    /// Takes the snapshot before a command.
    async fn before(
        &self,
        workspace: &Arc<Workspace>,
        call: &Invocation,
        context: &ToolContext,
    ) -> Result<Base, Unrecorded> {
        let _alone = workspace.alone().await;
        let this = workspace.clone();
        let tracked = match until_cancelled(context, move |_| this.prepare()).await? {
            Some(at) if repository::is_around(&workspace.root) => {
                Tracked::ask(&self.runner, &workspace.root, at).await
            }
            Some(_) | None => Tracked::default(),
        };
        let (this, note) = (workspace.clone(), self.notes.path(&call.turn, &call.call));
        let keep = move |flag: &CancelFlag| {
            let base = this.take(&tracked, flag)?;
            if let Some(note) = note {
                this.save(&base, &note)?;
            }
            Ok(base)
        };
        until_cancelled(context, keep).await
    }

    /// Finds out what a command did. This is not cancelled: it is to be known of a cancelled one, too.
    async fn after(&self, workspace: Arc<Workspace>, base: Base) -> Result<Record, Unrecorded> {
        let _alone = workspace.alone().await;
        let looking = spawn_blocking(move || workspace.since(&base));
        looking.await.unwrap_or_else(|error| Err(Unrecorded::Workspace(error.to_string())))
    }
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
    pub(crate) fn new(tool: T, recorder: Recorder) -> Self {
        Self { tool, recorder }
    }

    async fn record(&self, call: Invocation, context: ToolContext) -> ToolOutput {
        let (snapshots, root) = (self.recorder.snapshots.clone(), call.workspace.clone());
        let found = spawn_blocking(move || snapshots.workspace(&root)).await;
        let Ok(Some(workspace)) = found else { return self.tool.run(call, context).await };
        let turn = call.turn.clone();
        let known = workspace.mentioned(&turn).trouble.clone();
        if let Some(trouble) = known {
            let mut output = self.tool.run(call, context).await;
            output.outcome.unrecorded.push(everywhere(trouble));
            return output;
        }
        let base = match self.recorder.before(&workspace, &call, &context).await {
            Err(Unrecorded::Cancelled) => {
                return Outcome::ended(Ending::Cancelled, "cancelled").into();
            }
            base => base,
        };
        let output = self.tool.run(call, context).await;
        let record = match base {
            Ok(base) => self.recorder.after(workspace.clone(), base).await,
            Err(why) => Err(why),
        };
        match record {
            Ok(record) => with(output, record, &workspace, &turn),
            Err(why) => without(output, &why, &workspace, &turn),
        }
    }
}

/// What comes of a call with its record. Of paths that are not recorded the model is told once a turn.
fn with(
    mut output: ToolOutput,
    record: Record,
    workspace: &Workspace,
    turn: &TurnId,
) -> ToolOutput {
    let Record { changes, gaps } = record;
    output.changes.extend(changes);
    let mut mentioned = workspace.mentioned(turn);
    let known = gaps.iter().filter_map(|gap| Some((gap, gap.paths?)));
    let new: Vec<_> = known.filter(|(gap, _)| mentioned.paths.insert(gap.path.clone())).collect();
    drop(mentioned);
    let one = |(gap, paths): &(&UnrecordedChange, u64)| {
        let paths = show::count(usize::try_from(*paths).unwrap_or(usize::MAX), "path");
        format!("{paths} at {} ({})", if gap.path.is_empty() { "." } else { &gap.path }, gap.reason)
    };
    let list: Vec<_> = new.iter().take(NAMED_LIMIT).map(one).collect();
    let more = new.len().saturating_sub(NAMED_LIMIT);
    let more = if more > 0 { format!(" and at {more} more places") } else { String::new() };
    if !list.is_empty() {
        note(&mut output, &format!("not recorded for an undo: {}{more}", list.join(", ")));
    }
    output.outcome.unrecorded.extend(gaps);
    output
}

/// What comes of a call of which nothing is recorded; there is no need to try again in its turn.
fn without(
    mut output: ToolOutput,
    why: &Unrecorded,
    workspace: &Workspace,
    turn: &TurnId,
) -> ToolOutput {
    let trouble = why.to_string();
    if workspace.mentioned(turn).trouble.replace(trouble.clone()).is_none() {
        let text = "what commands do to files is not recorded here and cannot be undone";
        note(&mut output, &format!("{text}: {trouble}"));
    }
    output.outcome.unrecorded.push(everywhere(trouble));
    output
}

fn note(output: &mut ToolOutput, text: &str) {
    output.outcome.parts.push(Part::Text(format!("\n[{text}]")));
}

fn everywhere(reason: String) -> UnrecordedChange {
    UnrecordedChange { path: String::new(), paths: None, reason }
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
