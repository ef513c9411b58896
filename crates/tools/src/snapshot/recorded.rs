//! A tool that runs commands, with a record of what they do to files.

use std::sync::Arc;

use quintet_kernel::TurnId;
use quintet_kernel::change::Gap;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Spec};

use super::{Base, Record, Shelf, Snapshots, Unrecorded};
use crate::{blocking, show};

/// How many places are named that are not recorded.
const MOST_NAMED: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    snapshots: Arc<Snapshots>,
}

impl<T: Tool> Recorded<T> {
    pub(crate) fn new(tool: T, snapshots: Arc<Snapshots>) -> Self {
        Self { tool, snapshots }
    }

    async fn record(&self, call: Invocation, desk: Desk) -> Output {
        let Ok(shelf) = self.snapshots.shelf(&call.workspace) else {
            return self.tool.run(call, desk).await;
        };
        let turn = call.turn.clone();
        let known = shelf.told(&turn).trouble.clone();
        if let Some(trouble) = known {
            return with_gaps(self.tool.run(call, desk).await, vec![everywhere(trouble)]);
        }
        let base = match self.before(shelf.clone(), &desk).await {
            Err(Unrecorded::Cancelled) => {
                return Outcome::ended(Ending::Cancelled, "cancelled").into();
            }
            base => base,
        };
        let mut output = self.tool.run(call, desk).await;
        let record = match base {
            Ok(base) => self.since(base).await,
            Err(why) => Err(why),
        };
        let Record { changes, gaps, note } =
            record.unwrap_or_else(|why| nothing(&shelf, &turn, &why));
        output.changes.extend(changes);
        let notes = note.into_iter().chain(news(&shelf, &turn, &gaps));
        output.outcome.parts.extend(notes.map(|note| Part::Text(format!("\n[{note}]"))));
        with_gaps(output, gaps)
    }

    async fn before(&self, shelf: Arc<Shelf>, desk: &Desk) -> Result<Base, Unrecorded> {
        let snapshots = self.snapshots.clone();
        let looking = blocking::until_cancelled(desk, move |flag| snapshots.before(shelf, flag));
        match looking.await {
            Some(Ok(base)) => base,
            Some(Err(error)) => Err(Unrecorded::Workspace(error.to_string())),
            None => Err(Unrecorded::Cancelled),
        }
    }

    /// This is not cancelled: what a cancelled command did is to be known too.
    async fn since(&self, base: Base) -> Result<Record, Unrecorded> {
        let snapshots = self.snapshots.clone();
        let looking = tokio::task::spawn_blocking(move || snapshots.since(&base));
        looking.await.unwrap_or_else(|error| Err(Unrecorded::Workspace(error.to_string())))
    }
}

/// What there is to say where nothing is recorded, which is then known in this turn.
fn nothing(shelf: &Shelf, turn: &TurnId, why: &Unrecorded) -> Record {
    let trouble = why.to_string();
    let first = shelf.told(turn).trouble.replace(trouble.clone()).is_none();
    let note = || {
        format!("what commands do to files is not recorded here and cannot be undone: {trouble}")
    };
    Record { changes: Vec::new(), note: first.then(note), gaps: vec![everywhere(trouble)] }
}

fn everywhere(reason: String) -> Gap {
    Gap { path: String::new(), paths: None, reason }
}

fn with_gaps(mut output: Output, gaps: Vec<Gap>) -> Output {
    output.outcome.unrecorded.extend(gaps);
    output
}

/// What the model is told of folders that are not recorded: of each once a turn.
fn news(shelf: &Shelf, turn: &TurnId, gaps: &[Gap]) -> Option<String> {
    let mut told = shelf.told(turn);
    let new = gaps.iter().filter(|gap| !gap.path.is_empty());
    let new: Vec<_> = new.filter(|gap| told.folders.insert(gap.path.clone())).collect();
    let paths = |gap: &&Gap| match gap.paths {
        Some(paths) => show::count(usize::try_from(paths).unwrap_or(usize::MAX), "path"),
        None => "what changed".to_owned(),
    };
    let one = |gap: &&Gap| format!("{} at {} ({})", paths(gap), gap.path, gap.reason);
    let list: Vec<_> = new.iter().take(MOST_NAMED).map(one).collect();
    let more = new.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and at {more} more places") } else { String::new() };
    (!list.is_empty()).then(|| format!("not recorded for an undo: {}{more}", list.join(", ")))
}

impl<T: Tool> Tool for Recorded<T> {
    fn spec(&self) -> Arc<Spec> {
        self.tool.spec()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        self.tool.assess(call)
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        Box::pin(self.record(call, desk))
    }
}
