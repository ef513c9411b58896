//! Computes the vectors of notes in the background.
//!
//! Each workspace has one task, and only one task computes at a time. A task updates the index and
//! continues until every passage has a vector. After a failure the next search or entry retries.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::port::{Clock, Embedder};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};

use crate::confined_fs::Root;
use crate::index::update;
use crate::markdown_memory::WorkspaceNotes;
use crate::{embedding, vectors};

/// The passages with vectors.
const EMBEDDED: &str = "SELECT id FROM passages";

/// The background work for all workspaces. Dropping it ends the work.
pub(crate) struct NoteVectors {
    shared: Shared,
    tasks: Mutex<JoinSet<()>>,
}

/// State that all tasks share.
#[derive(Clone)]
struct Shared {
    embedder: Arc<dyn Embedder>,
    clock: Arc<dyn Clock>,
    work_permit: Arc<Semaphore>,
    /// Workspaces with a task; true if something changed since the task started.
    running: Arc<Mutex<HashMap<PathBuf, bool>>>,
}

/// A passage that has no vector.
struct Unembedded {
    id: i64,
    digest: Vec<u8>,
    text: String,
}

impl NoteVectors {
    pub(crate) fn new(embedder: Arc<dyn Embedder>, clock: Arc<dyn Clock>) -> Self {
        let (work_permit, running) = (Arc::new(Semaphore::new(1)), Arc::default());
        Self { shared: Shared { embedder, clock, work_permit, running }, tasks: Mutex::default() }
    }

    pub(crate) fn embedder(&self) -> &dyn Embedder {
        &*self.shared.embedder
    }

    /// The name of the embedder's space.
    pub(crate) fn space(&self) -> String {
        self.embedder().space().version()
    }

    /// Starts a task for a workspace, or makes its running task scan again. Does nothing while the
    /// embedder is not ready.
    pub(crate) fn start(&self, root: &Path, notes: &Arc<WorkspaceNotes>) {
        if self.embedder().ready().is_err() || !self.shared.begin(root) {
            return;
        }
        let (shared, root, notes) = (self.shared.clone(), root.to_owned(), Arc::clone(notes));
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { shared.run(&root, &notes).await });
    }
}

impl Shared {
    /// True if a task must be started.
    fn begin(&self, root: &Path) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let known = running.get_mut(root).map(|again| *again = true).is_some();
        if !known {
            running.insert(root.to_owned(), false);
        }
        !known
    }

    /// True if the task is done.
    fn end(&self, root: &Path) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let again = running.get_mut(root).is_some_and(std::mem::take);
        if !again {
            running.remove(root);
        }
        !again
    }

    async fn run(&self, root: &Path, notes: &Arc<WorkspaceNotes>) {
        let Ok(_permit) = self.work_permit.acquire().await else { return };
        loop {
            if let Err(reason) = self.compute(root, notes).await {
                tracing::warn!(%reason, "could not compute vectors of notes; they are searched by words alone");
            }
            if self.end(root) {
                return;
            }
        }
    }

    async fn compute(&self, root: &Path, notes: &Arc<WorkspaceNotes>) -> Result<(), String> {
        let (folder, now) = (root.to_owned(), self.clock.now());
        let look = move || {
            let root = Root::open(&folder)?;
            let fingerprints = update::scan(&root, now)?;
            Ok((root, fingerprints))
        };
        let (root, fingerprints) = blocking(look).await?;
        let up_to_date = on_disk(notes, move |db| update::update(db, &root, &fingerprints));
        up_to_date.await?;
        loop {
            let space = self.embedder.space().version();
            let missing = on_disk(notes, move |db| missing(db, &space)).await?;
            if missing.is_empty() {
                return on_disk(notes, |db| vectors::trim_vectors(db)).await;
            }
            let texts = missing.iter().map(|passage| passage.text.clone()).collect();
            let batch = embedding::batch(&*self.embedder, texts).await;
            let batch = Arc::new(batch.map_err(|error| error.to_string())?);
            let (space, computed) = (self.embedder.space().version(), Arc::clone(&batch));
            on_disk(notes, move |db| store(db, &space, &missing, &computed.vectors)).await?;
            batch.pause().await;
        }
    }
}

/// The next passages without a vector.
fn missing(db: &mut Connection, space: &str) -> rusqlite::Result<Vec<Unembedded>> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    vectors::use_space(&change, space, EMBEDDED)?;
    let mut missing = Vec::new();
    for id in vectors::pending(&change)? {
        let mut passage =
            change.prepare_cached("SELECT digest, headings, text FROM passages WHERE id = ?1")?;
        missing.push(passage.query_row([id], |row| {
            let (headings, text): (String, String) = (row.get(1)?, row.get(2)?);
            let text = update::text_to_embed(&headings, &text);
            Ok(Unembedded { id, digest: row.get(0)?, text })
        })?);
    }
    change.commit()?;
    Ok(missing)
}

/// Stores vectors of passages that did not change meanwhile.
fn store(
    db: &mut Connection,
    space: &str,
    passages: &[Unembedded],
    vectors: &[Vec<f32>],
) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    vectors::use_space(&change, space, EMBEDDED)?;
    let mut same = Vec::new();
    for (Unembedded { id, digest, .. }, vector) in passages.iter().zip(vectors) {
        let mut passage =
            change.prepare_cached("SELECT 1 FROM passages WHERE id = ?1 AND digest = ?2")?;
        if passage.exists(params![id, digest])? {
            same.push((*id, vector));
        }
    }
    vectors::put_all(&change, same)?;
    change.commit()
}

async fn on_disk<T: Send + 'static>(
    notes: &Arc<WorkspaceNotes>,
    work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, String> {
    let notes = Arc::clone(notes);
    blocking(move || notes.index.on_disk(work)).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, quintet_kernel::memory::MemoryError> + Send + 'static,
) -> Result<T, String> {
    let done = spawn_blocking(work).await.map_err(|error| error.to_string())?;
    done.map_err(|error| error.to_string())
}

impl fmt::Debug for NoteVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoteVectors")
    }
}
