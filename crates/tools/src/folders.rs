//! Workspaces as they are on this machine.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::change::{FileKind, UnrecordedChange};
use quintet_kernel::context::Section;
use quintet_kernel::port::{
    BlobBody, BoxFuture, ChangedFile, FileContent, InterruptedChanges, RevertMode, Workspaces,
};
use quintet_kernel::{CallId, TurnId};
use tokio::task::spawn_blocking;

use crate::blocking;
use crate::change::Notes;
use crate::folders::settled::{Look, Settled};
use crate::recall::Recall;
use crate::run::Runner;
use crate::snapshot::objects::Objects;
use crate::snapshot::{Base, Record, Snapshots, Workspace};
use crate::survey::{Gathered, Survey};

mod diff;
mod now;
mod put_back;
mod sentry;
mod settled;

pub(crate) use now::part;

/// The longest content that is held in memory, and how much is held in all, in bytes.
const SHORT: u64 = 1024 * 1024;
const HELD: u64 = 64 * 1024 * 1024;

/// Workspaces as they are on this machine.
#[derive(Debug)]
pub(crate) struct Folders {
    survey: Survey,
    recall: Option<Recall>,
    undo: Arc<Undo>,
    settled: Settled,
}

/// What an undo needs to know.
#[derive(Debug)]
pub(crate) struct Undo {
    /// What calls began with that may be cut off.
    pub(crate) notes: Arc<Notes>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// Runs git.
    pub(crate) runner: Arc<Runner>,
    /// A folder for temporary files.
    pub(crate) cache: PathBuf,
}

/// What a call noted before it changed files.
enum Noted {
    /// The files that it named, and what became of them.
    Changes(Vec<ChangedFile>),
    /// All files, as they were.
    Snapshot(Arc<Workspace>, Base),
}

impl Undo {
    /// Reads the contents of changes that are among the objects of the repository around a workspace.
    /// The contents can be read as long as the returned objects are kept.
    async fn fill(&self, workspace: &Path, changes: &mut [ChangedFile]) -> Objects {
        let objects = Objects::of(&self.runner, workspace, &self.cache, changes).await;
        objects.fill(changes);
        objects
    }

    /// Reads what is short, and where links lead, so that it can be shown and put back.
    fn hold(changes: &mut [ChangedFile]) {
        let sides = changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten();
        let mut held = 0;
        for FileContent { body, shape, .. } in sides {
            let Some(BlobBody::File(extent)) = body else { continue };
            if *shape == FileKind::Link || extent.length <= SHORT && held + extent.length <= HELD {
                let (mut bytes, length) = (Vec::new(), extent.length);
                let read = part(extent).and_then(|mut part| part.read_to_end(&mut bytes));
                if read.is_ok_and(|read| read as u64 == length) {
                    held += length;
                    *body = Some(BlobBody::Bytes(bytes));
                }
            }
        }
    }

    /// What a call noted before it was cut off; nothing if it noted nothing.
    fn noted(&self, root: &Path, turn: &TurnId, call: &CallId) -> Option<Noted> {
        if let Some(changes) = self.notes.changes(root, turn, call) {
            return Some(Noted::Changes(changes));
        }
        let base = Workspace::saved(&self.notes.base(turn, call)?)?;
        Some(Noted::Snapshot(self.snapshots.workspace(root).ok()?, base))
    }

    /// What became of files by a call that was cut off; nothing if it noted nothing.
    async fn cut_off(
        self: Arc<Self>,
        root: PathBuf,
        turn: TurnId,
        call: CallId,
    ) -> Option<InterruptedChanges> {
        let noted = spawn_blocking(move || self.noted(&root, &turn, &call)).await;
        let (workspace, base) = match noted.ok()?? {
            Noted::Changes(changes) => {
                return Some(InterruptedChanges { changes, unrecorded: Vec::new() });
            }
            Noted::Snapshot(workspace, base) => (workspace, base),
        };
        let _alone = workspace.alone().await;
        let since = spawn_blocking({
            let workspace = workspace.clone();
            move || workspace.since(&base)
        });
        Some(match since.await.ok()? {
            Ok(Record { changes, gaps }) => InterruptedChanges { changes, unrecorded: gaps },
            Err(why) => {
                let gap =
                    UnrecordedChange { path: String::new(), paths: None, reason: why.to_string() };
                InterruptedChanges { changes: Vec::new(), unrecorded: vec![gap] }
            }
        })
    }
}

impl Folders {
    pub(crate) fn new(survey: Survey, recall: Option<Recall>, undo: Undo) -> Self {
        Self { survey, recall, undo: undo.into(), settled: Settled::default() }
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
    fn gather_context<'a>(
        &'a self,
        workspace: &'a Path,
        tokens: u64,
    ) -> BoxFuture<'a, Vec<Section>> {
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

    fn diff<'a>(
        &'a self,
        workspace: &'a Path,
        mut changes: Vec<ChangedFile>,
    ) -> BoxFuture<'a, String> {
        Box::pin(async move {
            let _objects = self.undo.fill(workspace, &mut changes).await;
            let shown = spawn_blocking(move || {
                Undo::hold(&mut changes);
                diff::diff(&changes)
            });
            let shown = shown.await;
            shown.unwrap_or_else(|error| format!("the changes cannot be shown: {error}\n"))
        })
    }

    fn revert_changes<'a>(
        &'a self,
        workspace: &'a Path,
        mut changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let objects = self.undo.fill(workspace, &mut changes).await;
            let root = workspace.to_owned();
            let work = move || {
                Undo::hold(&mut changes);
                let done = put_back::put_back(&root, &changes, run);
                drop(objects);
                done
            };
            blocking::change(work).await
        })
    }

    fn interrupted_changes<'a>(
        &'a self,
        workspace: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<InterruptedChanges>> {
        let (root, turn, call) = (workspace.to_owned(), turn.clone(), call.clone());
        let undo = self.undo.clone();
        Box::pin(undo.cut_off(root, turn, call))
    }

    fn turn_ended(&self, turn: &TurnId) {
        self.undo.notes.forget(turn);
    }
}
