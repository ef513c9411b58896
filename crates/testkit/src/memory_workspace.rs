//! A workspace in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::change::FileKind;
use quintet_kernel::context::Section;
use quintet_kernel::port::{
    BlobBody, BoxFuture, ChangedFile, FileContent, InterruptedChanges, RevertMode, Workspaces,
};
use quintet_kernel::{CallId, TurnId};
use tokio::sync::watch;

/// One workspace in memory, whatever its path, whose files a test sets.
#[derive(Clone, Debug, Default)]
pub struct MemoryWorkspace {
    files: Arc<Mutex<BTreeMap<String, String>>>,
    named: Arc<Mutex<PreImages>>,
    undo_held: Arc<watch::Sender<bool>>,
}

/// The files that calls named before they started: the turn, the call, and the content.
type PreImages = Vec<(TurnId, CallId, BTreeMap<String, String>)>;

impl MemoryWorkspace {
    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        self.files().insert(path.into(), text.into());
    }

    /// The content of a file, if it exists.
    pub fn read(&self, path: &str) -> Option<String> {
        self.files().get(path).cloned()
    }

    /// Holds or releases reverts.
    pub fn hold_reverts(&self, held: bool) {
        self.undo_held.send_replace(held);
    }

    /// Records the content of files before a call changes them.
    pub fn name(&self, turn: &TurnId, call: &CallId, paths: &[&str]) {
        let files = self.files();
        let as_it_is = |path: &&str| Some(((*path).to_owned(), files.get(*path)?.clone()));
        let named = paths.iter().filter_map(as_it_is).collect();
        self.named().push((turn.clone(), call.clone(), named));
    }

    /// Number of calls with recorded files.
    pub fn remembers(&self) -> usize {
        self.named().len()
    }

    fn named(&self) -> MutexGuard<'_, PreImages> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restore_all(&self, changes: &[ChangedFile], run: RevertMode) -> Result<(), String> {
        let mut files = self.files();
        for ChangedFile { path, before, after } in changes {
            let now = files.get(path).cloned();
            if now != text(after.as_ref()) && now != text(before.as_ref()) {
                return Err(format!("{path} was changed since"));
            }
        }
        let applied = if run == RevertMode::Apply { changes } else { &[] };
        for ChangedFile { path, before, .. } in applied {
            match text(before.as_ref()) {
                Some(text) => files.insert(path.clone(), text),
                None => files.remove(path),
            };
        }
        Ok(())
    }
}

impl Workspaces for MemoryWorkspace {
    fn gather_context<'a>(&'a self, _: &'a Path, _: u64) -> BoxFuture<'a, Vec<Section>> {
        let names: Vec<String> = self.files().keys().cloned().collect();
        let section = Section { title: "REPO TREE".into(), text: names.join("\n") };
        let sections = if names.is_empty() { Vec::new() } else { vec![section] };
        Box::pin(std::future::ready(sections))
    }

    fn diff<'a>(&'a self, _: &'a Path, changes: Vec<ChangedFile>) -> BoxFuture<'a, String> {
        let shown = |content: &Option<FileContent>| text(content.as_ref()).unwrap_or_default();
        let one = |change: &ChangedFile| {
            let (before, after) = (shown(&change.before), shown(&change.after));
            format!("{}: {before:?} -> {after:?}\n", change.path)
        };
        Box::pin(std::future::ready(changes.iter().map(one).collect()))
    }

    fn revert_changes<'a>(
        &'a self,
        _: &'a Path,
        changes: Vec<ChangedFile>,
        run: RevertMode,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let _ = self.undo_held.subscribe().wait_for(|held| !held).await;
            self.restore_all(&changes, run)
        })
    }

    fn interrupted_changes<'a>(
        &'a self,
        _: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<InterruptedChanges>> {
        let of = |(of_turn, of_call, _): &&(TurnId, CallId, _)| of_turn == turn && of_call == call;
        let named = self.named().iter().find(of).map(|(_, _, files)| files.clone());
        let one = |(path, before): (String, String)| {
            let (before, after) =
                (Some(content(&before)), self.read(&path).as_deref().map(content));
            (before != after).then_some(ChangedFile { path, before, after })
        };
        let traces = |named: BTreeMap<_, _>| InterruptedChanges {
            changes: named.into_iter().filter_map(one).collect(),
            unrecorded: Vec::new(),
        };
        Box::pin(std::future::ready(named.map(traces)))
    }

    fn turn_ended(&self, turn: &TurnId) {
        self.named().retain(|(of, _, _)| of != turn);
    }
}

fn content(text: &str) -> FileContent {
    let (body, size) = (Some(BlobBody::Bytes(text.as_bytes().to_vec())), text.len() as u64);
    FileContent { body, size, mode: None, shape: FileKind::File }
}

fn text(content: Option<&FileContent>) -> Option<String> {
    content.map(|content| match &content.body {
        Some(BlobBody::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(BlobBody::File(_) | BlobBody::Hash(_)) | None => String::new(),
    })
}
