//! The kernel's memory port over Markdown files. Files are read and written on blocking threads.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::context::Section;
use quintet_kernel::memory::{
    LineRange, MemoryEntry, MemoryError, MemoryFile, MemoryMatch, MemoryQuery, Passage, SavedEntry,
    SearchMethod, SearchResult,
};
use quintet_kernel::port::{BoxFuture, Clock, Embedder, Memory, SenseError};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::append::{self, OnDuplicate};
use crate::confined_fs::Root;
use crate::index::Index;
use crate::index::find::{self, PassageQuery};
use crate::index::update::{self, Fingerprints};
use crate::note_vectors::NoteVectors;
use crate::pending_append::PendingAppend;
use crate::{Settings, bootstrap, embedding, paths, read, retention, vectors};

/// Default and maximum number of returned passages.
const DEFAULT_LIMIT: usize = 8;
const RESULTS_LIMIT: usize = 50;

/// Maximum length of a query, in bytes.
const QUERY_BYTES_LIMIT: usize = 16 * 1024;

/// Memory in Markdown files.
#[derive(Clone)]
pub struct MarkdownMemory {
    settings: Arc<Settings>,
    clock: Arc<dyn Clock>,
    workspaces: Arc<Mutex<HashMap<PathBuf, Arc<WorkspaceNotes>>>>,
    vectors: Option<Arc<NoteVectors>>,
}

/// The index and pending entry of one workspace.
#[derive(Debug)]
pub(crate) struct WorkspaceNotes {
    pub(crate) index: Index,
    pending: PendingAppend,
    /// The day on which retention was last applied.
    retention_day: Mutex<String>,
}

/// The index of a workspace, up to date with the files.
struct Prepared {
    fingerprints: Fingerprints,
    /// True if there are vectors of the embedder's space.
    vectors: bool,
}

impl MarkdownMemory {
    /// Memory with these settings. Nothing is read or created before it is needed.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self { settings: settings.into(), clock, workspaces: Arc::default(), vectors: None }
    }

    /// Adds search by meaning, with vectors of this embedder.
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.vectors = Some(Arc::new(NoteVectors::new(embedder, Arc::clone(&self.clock))));
        self
    }

    /// The notes of a workspace, whatever path names it.
    fn notes_of(&self, root: &Path) -> Arc<WorkspaceNotes> {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || {
            let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
            let key = hex::encode(&digest[..12]);
            let file = |end: &str| self.settings.index.join(format!("{key}{end}"));
            let (index, pending) =
                (Index::new(file(".sqlite")), PendingAppend::new(file(".pending")));
            Arc::new(WorkspaceNotes { index, pending, retention_day: Mutex::default() })
        };
        Arc::clone(workspaces.entry(real.clone()).or_insert_with(make))
    }

    /// Opens a workspace, repairs an interrupted append and applies retention.
    fn open(&self, root: &Path) -> Result<(Root, Arc<WorkspaceNotes>), MemoryError> {
        let (opened, notes) = (Root::open(root)?, self.notes_of(root));
        notes.pending.repair(&opened);
        self.sweep(&opened, &notes);
        Ok((opened, notes))
    }

    /// Archives or deletes old notes, once a day.
    fn sweep(&self, root: &Root, notes: &WorkspaceNotes) {
        let (now, days) = (self.clock.now(), self.settings.keep_days);
        let mut retention_day = notes.retention_day.lock().unwrap_or_else(PoisonError::into_inner);
        if days == 0 || *retention_day == now.day() {
            return;
        }
        *retention_day = now.day();
        if let Err(error) = retention::sweep(root, days, self.settings.expired, now) {
            tracing::warn!(%error, "could not archive or delete old daily notes");
        }
    }

    fn write_now(&self, root: &Path, entry: &MemoryEntry) -> Result<SavedEntry, MemoryError> {
        let text = append::entry(&entry.content)?;
        let (root, notes) = self.open(root)?;
        let at = entry.once.unwrap_or_else(|| self.clock.now());
        let path = paths::file_to_write(entry.target, at);
        let again = if entry.once.is_some() { OnDuplicate::Skip } else { OnDuplicate::Append };
        let done = append::append(&root, &notes.pending, &path, &text, again)?;
        let warning = self.warning(entry.target, &path, done.bytes);
        let (line_start, line_end) = (done.line_start, done.line_end);
        Ok(SavedEntry { path, line_start, line_end, warning })
    }

    fn warning(&self, target: MemoryFile, path: &str, bytes: u64) -> Option<String> {
        let most = self.settings.soft_limit_bytes;
        if target != MemoryFile::LongTerm || most == 0 || bytes <= most {
            return None;
        }
        let warning = format!(
            "{path} has {bytes} bytes, more than the {most} it should have; it still works, but \
             what is out of date in it should be taken out"
        );
        tracing::warn!("{warning}");
        Some(warning)
    }

    /// Updates the index.
    fn prepare(&self, root: &Path) -> Result<Prepared, MemoryError> {
        let (root, notes) = self.open(root)?;
        let fingerprints = update::scan(&root, self.clock.now())?;
        let space = self.vectors.as_ref().map(|vectors| vectors.space());
        let vectors = notes.index.with(|db| {
            update::update(db, &root, &fingerprints)?;
            space.as_ref().map_or(Ok(false), |space| vectors::any_of(db, space))
        })?;
        Ok(Prepared { fingerprints, vectors })
    }

    /// Ranks by words and, if there is a vector of the query, by meaning.
    fn find(
        &self,
        root: &Path,
        query: &MemoryQuery,
        fingerprints: &Fingerprints,
        vector: Option<&[f32]>,
    ) -> Result<Vec<MemoryMatch>, MemoryError> {
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(RESULTS_LIMIT);
        let query = PassageQuery { query: &query.text, kind: query.kind, limit, vector };
        let (root, notes) = (Root::open(root)?, self.notes_of(root));
        notes.index.with(|db| {
            // An index in memory is empty at first.
            update::update(db, &root, fingerprints)?;
            find::find(db, &query)
        })
    }

    async fn search_now(
        &self,
        root: PathBuf,
        query: MemoryQuery,
    ) -> Result<SearchResult, MemoryError> {
        if query.text.trim().is_empty() {
            return Err(MemoryError::BadQuery("it is empty"));
        }
        if query.text.len() > QUERY_BYTES_LIMIT {
            return Err(MemoryError::BadQuery("it is too long"));
        }
        let folder = root.clone();
        let prepared = self.blocking(move |this| this.prepare(&folder)).await?;
        self.compute_vectors(&root);
        let vector = self.query_vector(&query.text, prepared.vectors).await;
        let (vector, method) = match vector {
            Ok(vector) => (Some(vector), SearchMethod::WordsAndMeaning),
            Err(reason) => (None, SearchMethod::Words { reason }),
        };
        let find =
            move |this: &Self| this.find(&root, &query, &prepared.fingerprints, vector.as_deref());
        Ok(SearchResult { passages: self.blocking(find).await?, method })
    }

    /// The vector of a query. Fails with the reason why notes are not ranked by meaning.
    async fn query_vector(&self, text: &str, vectors: bool) -> Result<Vec<f32>, String> {
        let off = || SenseError::Off("embeddings").to_string();
        let embedder = self.vectors.as_ref().ok_or_else(off)?.embedder();
        embedder.ready().map_err(|error| error.to_string())?;
        if !vectors {
            return Err("the notes have no vectors yet".to_owned());
        }
        embedding::query(embedder, text).await
    }

    /// Starts computing the missing vectors in the background.
    fn compute_vectors(&self, root: &Path) {
        if let Some(vectors) = &self.vectors {
            vectors.start(root, &self.notes_of(root));
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, MemoryError> {
        let this = self.clone();
        let done = spawn_blocking(move || work(&this)).await;
        done.unwrap_or_else(|error| {
            Err(MemoryError::Storage(format!("the work broke off: {error}")))
        })
    }
}

impl Memory for MarkdownMemory {
    fn write<'a>(
        &'a self,
        root: &'a Path,
        entry: MemoryEntry,
    ) -> BoxFuture<'a, Result<SavedEntry, MemoryError>> {
        let root = root.to_owned();
        Box::pin(async move {
            let folder = root.clone();
            let written = self.blocking(move |this| this.write_now(&folder, &entry)).await?;
            self.compute_vectors(&root);
            Ok(written)
        })
    }

    fn search<'a>(
        &'a self,
        root: &'a Path,
        query: MemoryQuery,
    ) -> BoxFuture<'a, Result<SearchResult, MemoryError>> {
        Box::pin(self.search_now(root.to_owned(), query))
    }

    fn get<'a>(
        &'a self,
        root: &'a Path,
        path: &'a str,
        lines: LineRange,
    ) -> BoxFuture<'a, Result<Passage, MemoryError>> {
        let (root, path) = (root.to_owned(), path.to_owned());
        Box::pin(self.blocking(move |this| read::read(&this.open(&root)?.0, &path, lines)))
    }

    fn bootstrap<'a>(&'a self, root: &'a Path, tokens: u64) -> BoxFuture<'a, Vec<Section>> {
        let root = root.to_owned();
        let gather = move |this: &Self| {
            let now = this.clock.now();
            Ok(bootstrap::sections(&this.open(&root)?.0, tokens, now))
        };
        Box::pin(async move { self.blocking(gather).await.unwrap_or_default() })
    }
}

impl fmt::Debug for MarkdownMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarkdownMemory").field("settings", &self.settings).finish_non_exhaustive()
    }
}
