//! A workspace in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::change::Shape;
use quintet_kernel::context::Section;
use quintet_kernel::port::{Body, BoxFuture, Changed, Content, Traces, UndoRun, Workspaces};
use quintet_kernel::{CallId, TurnId};
use tokio::sync::watch;

/// One workspace, whatever its path, whose files are what a test says.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    files: Arc<Mutex<BTreeMap<String, String>>>,
    named: Arc<Mutex<Named>>,
    undo_held: Arc<watch::Sender<bool>>,
}

/// What calls named before they began: the turn, the call, and files as they were.
type Named = Vec<(TurnId, CallId, BTreeMap<String, String>)>;

impl Folder {
    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        self.files().insert(path.into(), text.into());
    }

    /// What is in a file, if it is there.
    pub fn read(&self, path: &str) -> Option<String> {
        self.files().get(path).cloned()
    }

    /// Has undoing wait, or go on.
    pub fn hold_undo(&self, held: bool) {
        self.undo_held.send_replace(held);
    }

    /// Has a call name files, as they are, before it changes them.
    pub fn name(&self, turn: &TurnId, call: &CallId, paths: &[&str]) {
        let files = self.files();
        let as_it_is = |path: &&str| Some(((*path).to_owned(), files.get(*path)?.clone()));
        let named = paths.iter().filter_map(as_it_is).collect();
        self.named().push((turn.clone(), call.clone(), named));
    }

    /// How many calls are remembered that named files.
    pub fn remembers(&self) -> usize {
        self.named().len()
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_all_back(&self, changes: &[Changed], run: UndoRun) -> Result<(), String> {
        let mut files = self.files();
        for Changed { path, before, after } in changes {
            let now = files.get(path).cloned();
            if now != text(after.as_ref()) && now != text(before.as_ref()) {
                return Err(format!("{path} was changed since"));
            }
        }
        let applied = if run == UndoRun::Apply { changes } else { &[] };
        for Changed { path, before, .. } in applied {
            match text(before.as_ref()) {
                Some(text) => files.insert(path.clone(), text),
                None => files.remove(path),
            };
        }
        Ok(())
    }
}

impl Workspaces for Folder {
    fn survey<'a>(&'a self, _: &'a Path, _: u64) -> BoxFuture<'a, Vec<Section>> {
        let names: Vec<String> = self.files().keys().cloned().collect();
        let section = Section { title: "REPO TREE".into(), text: names.join("\n") };
        let sections = if names.is_empty() { Vec::new() } else { vec![section] };
        Box::pin(std::future::ready(sections))
    }

    fn diff<'a>(&'a self, _: &'a Path, changes: Vec<Changed>) -> BoxFuture<'a, String> {
        let shown = |content: &Option<Content>| text(content.as_ref()).unwrap_or_default();
        let one = |change: &Changed| {
            let (before, after) = (shown(&change.before), shown(&change.after));
            format!("{}: {before:?} -> {after:?}\n", change.path)
        };
        Box::pin(std::future::ready(changes.iter().map(one).collect()))
    }

    fn put_back<'a>(
        &'a self,
        _: &'a Path,
        changes: Vec<Changed>,
        run: UndoRun,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let _ = self.undo_held.subscribe().wait_for(|held| !held).await;
            self.put_all_back(&changes, run)
        })
    }

    fn cut_off<'a>(
        &'a self,
        _: &'a Path,
        turn: &'a TurnId,
        call: &'a CallId,
    ) -> BoxFuture<'a, Option<Traces>> {
        let of = |(of_turn, of_call, _): &&(TurnId, CallId, _)| of_turn == turn && of_call == call;
        let named = self.named().iter().find(of).map(|(_, _, files)| files.clone());
        let one = |(path, before): (String, String)| {
            let (before, after) =
                (Some(content(&before)), self.read(&path).as_deref().map(content));
            (before != after).then_some(Changed { path, before, after })
        };
        let traces = |named: BTreeMap<_, _>| Traces {
            changes: named.into_iter().filter_map(one).collect(),
            unrecorded: Vec::new(),
        };
        Box::pin(std::future::ready(named.map(traces)))
    }

    fn over(&self, turn: &TurnId) {
        self.named().retain(|(of, _, _)| of != turn);
    }
}

fn content(text: &str) -> Content {
    let (body, size) = (Some(Body::Bytes(text.as_bytes().to_vec())), text.len() as u64);
    Content { body, size, mode: None, shape: Shape::File }
}

fn text(content: Option<&Content>) -> Option<String> {
    content.map(|content| match &content.body {
        Some(Body::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Body::File(_) | Body::Hash(_)) | None => String::new(),
    })
}
