//! A tool that runs commands, with a record of what they do to files.

use std::sync::Arc;

use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Spec};

use super::{Base, Record, Shelf, Snapshots, Unrecorded};
use crate::blocking;

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
        if shelf.is_told(&call.turn) {
            return self.tool.run(call, desk).await;
        }
        let base = match self.before(shelf.clone(), &desk).await {
            Err(Unrecorded::Cancelled) => {
                return Outcome::ended(Ending::Cancelled, "cancelled").into();
            }
            base => base,
        };
        let turn = call.turn.clone();
        let mut output = self.tool.run(call, desk).await;
        let record = match base {
            Ok(base) => self.since(base).await,
            Err(why) => Err(why),
        };
        let note = match record {
            Ok(Record { changes, note }) => {
                output.changes.extend(changes);
                note
            }
            Err(why) => shelf.tells(&turn).then(|| unrecorded(&why)),
        };
        output.outcome.parts.extend(note.map(|note| Part::Text(format!("\n[{note}]"))));
        output
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

fn unrecorded(why: &Unrecorded) -> String {
    format!("what commands do to files is not recorded here and cannot be undone: {why}")
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
