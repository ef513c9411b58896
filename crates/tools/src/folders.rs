//! Workspaces as they are on this machine.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Traces, Workspaces};
use quintet_kernel::{CallId, TurnId};
use tokio::task::spawn_blocking;

use crate::blocking;
use crate::change::Notes;
use crate::recall::Recall;
use crate::survey::Survey;
use crate::watch::Watches;

mod diff;
mod now;
mod put_back;

pub(crate) use now::{digest, same};
pub(crate) use put_back::builds;

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders {
    survey: Survey,
    recall: Option<Recall>,
    notes: Arc<Notes>,
    watches: Watches,
}

impl Folders {
    pub(crate) fn new(
        survey: Survey,
        recall: Option<Recall>,
        notes: Arc<Notes>,
        watches: Watches,
    ) -> Self {
        Self { survey, recall, notes, watches }
    }

    /// What is remembered, in its part of the budget, and how much is left of that for the rest.
    async fn remembered(&self, workspace: &Path, tokens: u64) -> (Vec<Section>, u64) {
        match &self.recall {
            Some(recall) => {
                let part = recall.part(tokens);
                (recall.memory.bootstrap(workspace, part).await, tokens - part)
            }
            None => (Vec::new(), tokens),
        }
    }
}

impl Workspaces for Folders {
    fn survey<'a>(&'a self, workspace: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        Box::pin(async move {
            let (remembered, left) = self.remembered(workspace, tokens).await;
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            let mut sections = match left {
                0 => Vec::new(),
                left => self.survey.gather(workspace, left).await,
            };
            // Behind the notices for agents, which come first where there are any.
            let notices =
                sections.iter().take_while(|section| section.title == "AGENTS.md").count();
            sections.splice(notices..notices, remembered);
            sections
        })
    }

    fn diff(&self, changes: Vec<Changed>) -> BoxFuture<'_, String> {
        Box::pin(async {
            let shown = spawn_blocking(move || diff::diff(&changes)).await;
            shown.unwrap_or_else(|error| format!("the changes cannot be shown: {error}\n"))
        })
    }

    fn put_back<'a>(
        &'a self,
        workspace: &'a Path,
        changes: Vec<Changed>,
    ) -> BoxFuture<'a, Result<(), String>> {
        let root = workspace.to_owned();
        Box::pin(blocking::change(move || put_back::put_back(&root, &changes)))
    }

    fn cut_off<'a>(
        &'a self,
        workspace: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<Traces>> {
        let (root, turn, call) = (workspace.to_owned(), turn.clone(), call.clone());
        let (notes, watches) = (self.notes.clone(), self.watches.clone());
        let looking = spawn_blocking(move || match notes.changes(&root, &turn, &call) {
            Some(changes) => Some(Traces { changes, unrecorded: Vec::new() }),
            None => watches.traces(&root, &turn, &call),
        });
        Box::pin(async { looking.await.ok().flatten() })
    }

    fn over(&self, turn: &TurnId) {
        self.notes.forget(turn);
    }
}
