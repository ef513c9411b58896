//! A tool that runs commands, with a record of what they do to files: the difference of a snapshot of
//! the workspace before and one after.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, ToolSpec};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::git_objects::Tracked;
use super::store::{Base, Mentioned, Workspace};
use super::{Record, Undo, Unrecorded, everywhere};
use crate::blocking::CancelFlag;
use crate::{blocking, show};

/// How many paths are named that are not recorded.
const NAMED_LIMIT: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    undo: Undo,
}

/// A workspace as it is before a call.
struct Before {
    /// The real path.
    root: PathBuf,
    workspace: Arc<Workspace>,
    base: Result<Base, Unrecorded>,
}

impl Undo {
    /// Takes the snapshot before a command; nothing if the workspace is not there.
    fn before(&self, call: &Invocation) -> impl FnOnce(&CancelFlag) -> Option<Before> + use<> {
        let (undo, root, turn) = (self.clone(), call.workspace.clone(), call.turn.clone());
        let (note, runtime) = (self.notes.path(&call.turn, &call.call), Handle::current());
        move |flag| {
            let root = root.canonicalize().ok()?;
            let workspace = undo.snapshots.workspace(&root);
            let tracked = |at| runtime.block_on(Tracked::ask(&undo.runner, &root, at));
            let known = workspace.mentioned(&turn).trouble.clone();
            let base = match known {
                // There is no need to try again in this turn.
                Some(trouble) => Err(Unrecorded::Workspace(trouble)),
                None => workspace.take(&root, tracked, flag, note.as_deref()),
            };
            Some(Before { root, workspace, base })
        }
    }
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
        let Ok(Some(before)) = before else { return self.tool.run(call, context).await };
        let turn = call.turn.clone();
        let mut output = self.tool.run(call, context).await;
        let Before { root, workspace, base } = before;
        let this = workspace.clone();
        // This is not cancelled: what a cancelled command did is to be known, too.
        let looking = spawn_blocking(move || base.and_then(|base| this.since(&root, &base)));
        let record =
            looking.await.unwrap_or_else(|error| Err(Unrecorded::Workspace(error.to_string())));
        add(&mut output, record, &mut workspace.mentioned(&turn));
        output
    }
}

/// Adds what became of files to the result of a call. What is not recorded is named to the model once
/// a turn.
fn add(output: &mut ToolOutput, record: Result<Record, Unrecorded>, mentioned: &mut Mentioned) {
    match record {
        Ok(Record { changes, unrecorded }) => {
            name(output, &unrecorded, mentioned);
            output.changes.extend(changes);
            output.outcome.unrecorded.extend(unrecorded);
        }
        Err(why) => {
            let trouble = why.to_string();
            if mentioned.trouble.replace(trouble.clone()).is_none() {
                let text = "what commands do to files is not recorded here and cannot be undone";
                note(output, &format!("{text}: {trouble}"));
            }
            output.outcome.unrecorded.push(everywhere(trouble));
        }
    }
}

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
