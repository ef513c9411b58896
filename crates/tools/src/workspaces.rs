//! Access to the workspaces on this machine.

use std::path::{Path, PathBuf};

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, ChangedFile, InterruptedChanges, RevertMode, Workspaces};
use quintet_kernel::{CallId, TurnId};

use crate::memory_settings::MemorySettings;
use crate::survey::{Survey, WorkspaceSurvey};
use crate::undo::Undo;
use crate::workspaces::survey_cache::{SurveyCache, SurveyRequest};

mod survey_cache;
mod watcher;

/// The workspaces on this machine.
#[derive(Debug)]
pub(crate) struct LocalWorkspaces {
    survey: Survey,
    recall: Option<MemorySettings>,
    undo: Undo,
    cache: SurveyCache,
}

impl LocalWorkspaces {
    pub(crate) fn new(survey: Survey, recall: Option<MemorySettings>, undo: Undo) -> Self {
        Self { survey, recall, undo, cache: SurveyCache::default() }
    }

    /// How the budget is parted: for what is remembered, and for the rest.
    fn parts(&self, tokens: u64) -> (u64, usize) {
        let part = self.recall.as_ref().map_or(0, |recall| recall.part(tokens));
        (part, usize::try_from(tokens - part).unwrap_or(usize::MAX))
    }

    /// Makes a full survey of a workspace.
    async fn look(&self, workspace: &Path, tokens: u64) -> WorkspaceSurvey {
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

    async fn gathered(&self, workspace: &Path, tokens: usize) -> WorkspaceSurvey {
        match tokens {
            0 => WorkspaceSurvey::default(),
            tokens => self.survey.gather(workspace, tokens).await,
        }
    }
}

impl Workspaces for LocalWorkspaces {
    fn gather_context<'a>(
        &'a self,
        workspace: &'a Path,
        tokens: u64,
    ) -> BoxFuture<'a, Vec<Section>> {
        Box::pin(async move {
            if let Some(sections) = self.cache.cached(workspace, tokens) {
                return sections;
            }
            let changes = self.cache.changes(workspace);
            let WorkspaceSurvey { sections, listing } = self.look(workspace, tokens).await;
            if let Some(listing) = listing {
                let look = SurveyRequest { workspace, tokens, changes };
                if !self.cache.keep(look, &listing, &sections) {
                    self.cache.watch(workspace, listing, self.besides());
                }
            }
            sections
        })
    }

    fn diff<'a>(&'a self, workspace: &'a Path, changes: Vec<ChangedFile>) -> BoxFuture<'a, String> {
        Box::pin(self.undo.diff(workspace, changes))
    }

    fn revert_changes<'a>(
        &'a self,
        workspace: &'a Path,
        changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.undo.revert(workspace.to_owned(), changes, run))
    }

    fn interrupted_changes<'a>(
        &'a self,
        workspace: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<InterruptedChanges>> {
        let (root, turn, call) = (workspace.to_owned(), turn.clone(), call.clone());
        Box::pin(self.undo.clone().interrupted(root, turn, call))
    }

    fn turn_ended(&self, turn: &TurnId) {
        self.undo.turn_ended(turn);
    }
}
