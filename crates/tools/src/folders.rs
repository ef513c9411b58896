//! Workspaces as they are on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Traces, Workspaces};
use quintet_kernel::{CallId, TurnId};
use tokio::task::spawn_blocking;

use crate::blocking;
use crate::change::Notes;
use crate::folders::settled::{Look, Settled};
use crate::recall::Recall;
use crate::survey::{Gathered, Survey};
use crate::watch::Watches;

mod diff;
mod now;
mod put_back;
mod sentry;
mod settled;

pub(crate) use now::{digest, same};
pub(crate) use put_back::builds;

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders {
    survey: Survey,
    recall: Option<Recall>,
    notes: Arc<Notes>,
    watches: Watches,
    settled: Settled,
}

impl Folders {
    pub(crate) fn new(
        survey: Survey,
        recall: Option<Recall>,
        notes: Arc<Notes>,
        watches: Watches,
    ) -> Self {
        Self { survey, recall, notes, watches, settled: Settled::default() }
    }

    /// How the budget is parted: for what is remembered, and for the rest.
    fn parts(&self, tokens: u64) -> (u64, usize) {
        let part = self.recall.as_ref().map_or(0, |recall| recall.part(tokens));
        (part, usize::try_from(tokens - part).unwrap_or(usize::MAX))
    }

    /// Looks at everything that a model is to know of a workspace.
    async fn look(&self, workspace: &Path, tokens: u64) -> Gathered {
        let (part, left) = self.parts(tokens);
        // Both wait for the disk, so they wait together.
        let (remembered, mut gathered) =
            tokio::join!(self.remembered(workspace, part), self.gathered(workspace, left));
        // Behind the notices for agents, which come first where there are any.
        let sections = &mut gathered.sections;
        let notices = sections.iter().take_while(|section| section.title == "AGENTS.md").count();
        sections.splice(notices..notices, remembered);
        gathered
    }

    /// A folder that counts although it may be ignored.
    fn besides(&self) -> Option<PathBuf> {
        self.recall.as_ref().map(|recall| recall.folder.into())
    }

    async fn remembered(&self, workspace: &Path, tokens: u64) -> Vec<Section> {
        match &self.recall {
            Some(recall) => recall.memory.bootstrap(workspace, tokens).await,
            None => Vec::new(),
        }
    }

    async fn gathered(&self, workspace: &Path, tokens: usize) -> Gathered {
        match tokens {
            0 => Gathered::default(),
            tokens => self.survey.gather(workspace, tokens).await,
        }
    }
}

impl Workspaces for Folders {
    fn survey<'a>(&'a self, workspace: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        Box::pin(async move {
            if let Some(sections) = self.settled.recall(workspace, tokens) {
                return sections;
            }
            let changes = self.settled.changes(workspace);
            let Gathered { sections, ground } = self.look(workspace, tokens).await;
            if let Some(ground) = ground {
                let look = Look { workspace, tokens, changes };
                if !self.settled.keep(look, &ground, &sections) {
                    self.settled.post(workspace, ground, self.besides());
                }
            }
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
