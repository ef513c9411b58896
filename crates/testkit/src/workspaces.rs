//! A workspace in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::context::Section;
use quintet_kernel::port::{BoxFuture, Changed, Content, Workspaces};

/// One workspace, whatever its path, whose files are what a test says.
#[derive(Clone, Debug, Default)]
pub struct Folder {
    files: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Folder {
    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        self.files().insert(path.into(), text.into());
    }

    /// What is in a file, if it is there.
    pub fn read(&self, path: &str) -> Option<String> {
        self.files().get(path).cloned()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_all_back(&self, changes: &[Changed]) -> Result<(), String> {
        let mut files = self.files();
        for Changed { path, before, after } in changes {
            let now = files.get(path).cloned();
            if now != text(after.as_ref()) && now != text(before.as_ref()) {
                return Err(format!("{path} was changed since"));
            }
        }
        for Changed { path, before, .. } in changes {
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

    fn diff(&self, changes: Vec<Changed>) -> BoxFuture<'_, String> {
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
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(self.put_all_back(&changes)))
    }
}

fn text(content: Option<&Content>) -> Option<String> {
    content.map(|content| {
        String::from_utf8_lossy(content.bytes.as_deref().unwrap_or_default()).into_owned()
    })
}
