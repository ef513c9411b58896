//! Memory as the rest of the daemon sees it. Files are read and written on threads that may wait.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::context::Section;
use quintet_kernel::memory::{Entry, Error, Found, Lines, Passage, Query, Target, Written};
use quintet_kernel::port::{BoxFuture, Memory, Stamps};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::append::{self, Again};
use crate::beneath::Root;
use crate::index::{Index, find, update};
use crate::pending::Pending;
use crate::{Settings, bootstrap, name, read, retention};

/// How many passages are given where nobody says, and at most.
const USUAL: usize = 8;
const MOST: usize = 50;

/// The longest query, in bytes.
const LONGEST_QUERY: usize = 16 * 1024;

/// Memory in Markdown files.
#[derive(Clone)]
pub struct Notebook {
    settings: Arc<Settings>,
    stamps: Arc<dyn Stamps>,
    shelves: Arc<Mutex<HashMap<PathBuf, Arc<Shelf>>>>,
}

/// What belongs to one workspace.
#[derive(Debug)]
struct Shelf {
    index: Index,
    pending: Pending,
    /// The day on which old notes were last put away.
    swept: Mutex<String>,
}

impl Notebook {
    /// Nothing is read or made before it is needed.
    pub fn new(settings: Settings, stamps: Arc<dyn Stamps>) -> Self {
        Self { settings: settings.into(), stamps, shelves: Arc::default() }
    }

    /// What belongs to a workspace, whatever name it is called by.
    fn shelf(&self, root: &Path) -> Arc<Shelf> {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
            let key = hex::encode(&digest[..12]);
            let file = |end: &str| self.settings.index.join(format!("{key}{end}"));
            let (index, pending) = (Index::new(file(".sqlite")), Pending::new(file(".pending")));
            Arc::new(Shelf { index, pending, swept: Mutex::default() })
        };
        Arc::clone(shelves.entry(real.clone()).or_insert_with(make))
    }

    /// The workspace and what belongs to it, with everything in order.
    fn open(&self, root: &Path) -> Result<(Root, Arc<Shelf>), Error> {
        let (opened, shelf) = (Root::open(root)?, self.shelf(root));
        shelf.pending.heal(&opened);
        self.sweep(&opened, &shelf);
        Ok((opened, shelf))
    }

    /// Puts old notes away, once a day.
    fn sweep(&self, root: &Root, shelf: &Shelf) {
        let (now, days) = (self.stamps.now(), self.settings.keep_days);
        let mut swept = shelf.swept.lock().unwrap_or_else(PoisonError::into_inner);
        if days == 0 || *swept == now.day() {
            return;
        }
        *swept = now.day();
        if let Err(error) = retention::sweep(root, days, self.settings.expired, now) {
            tracing::warn!(%error, "old notes could not be put away");
        }
    }

    fn write_now(&self, root: &Path, entry: &Entry) -> Result<Written, Error> {
        let text = append::entry(&entry.content)?;
        let (root, shelf) = self.open(root)?;
        let at = entry.once.unwrap_or_else(|| self.stamps.now());
        let path = name::written(entry.target, at);
        let again = if entry.once.is_some() { Again::Leave } else { Again::Write };
        let done = append::append(&root, &shelf.pending, &path, &text, again)?;
        let warning = self.warning(entry.target, &path, done.bytes);
        let (line_start, line_end) = (done.line_start, done.line_end);
        Ok(Written { path, line_start, line_end, warning })
    }

    fn warning(&self, target: Target, path: &str, bytes: u64) -> Option<String> {
        let most = self.settings.soft_limit_bytes;
        if target != Target::LongTerm || most == 0 || bytes <= most {
            return None;
        }
        let warning = format!(
            "{path} has {bytes} bytes, more than the {most} it should have; it still works, but \
             what is out of date in it should be taken out"
        );
        tracing::warn!("{warning}");
        Some(warning)
    }

    fn search_now(&self, root: &Path, query: &Query) -> Result<Vec<Found>, Error> {
        if query.text.trim().is_empty() {
            return Err(Error::BadQuery("it is empty"));
        }
        if query.text.len() > LONGEST_QUERY {
            return Err(Error::BadQuery("it is too long"));
        }
        let limit = query.limit.unwrap_or(USUAL).min(MOST);
        let (root, shelf) = self.open(root)?;
        let prints = update::look(&root, self.stamps.now())?;
        shelf.index.with(|db| {
            update::update(db, &root, &prints)?;
            find::find(db, &query.text, query.kind, limit)
        })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let this = self.clone();
        let done = spawn_blocking(move || work(&this)).await;
        done.unwrap_or_else(|error| Err(Error::Storage(format!("the work broke off: {error}"))))
    }
}

impl Memory for Notebook {
    fn write<'a>(&'a self, root: &'a Path, entry: Entry) -> BoxFuture<'a, Result<Written, Error>> {
        let root = root.to_owned();
        Box::pin(self.blocking(move |this| this.write_now(&root, &entry)))
    }

    fn search<'a>(
        &'a self,
        root: &'a Path,
        query: Query,
    ) -> BoxFuture<'a, Result<Vec<Found>, Error>> {
        let root = root.to_owned();
        Box::pin(self.blocking(move |this| this.search_now(&root, &query)))
    }

    fn get<'a>(
        &'a self,
        root: &'a Path,
        path: &'a str,
        lines: Lines,
    ) -> BoxFuture<'a, Result<Passage, Error>> {
        let (root, path) = (root.to_owned(), path.to_owned());
        Box::pin(self.blocking(move |this| read::read(&this.open(&root)?.0, &path, lines)))
    }

    fn bootstrap<'a>(&'a self, root: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        let root = root.to_owned();
        let gather = move |this: &Self| {
            let now = this.stamps.now();
            Ok(bootstrap::sections(&this.open(&root)?.0, tokens, now))
        };
        Box::pin(async move { self.blocking(gather).await.unwrap_or_default() })
    }
}

impl fmt::Debug for Notebook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notebook").field("settings", &self.settings).finish_non_exhaustive()
    }
}
