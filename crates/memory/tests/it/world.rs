//! A workspace, its memory and a settable clock.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quintet_kernel::memory::{
    LineRange, MemoryEntry, MemoryError, MemoryFile, MemoryMatch, MemoryQuery, Passage, SavedEntry,
    SearchResult,
};
use quintet_kernel::port::{Clock, Memory};
use quintet_kernel::{Stamp, Time};
use quintet_memory::{MarkdownMemory, OnExpiry, Settings};
use quintet_testkit::clock::START_TIME;
use quintet_testkit::fake_embedder::FakeEmbedder;
use tempfile::TempDir;

/// A workspace and its memory.
pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) index: TempDir,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) memory: MarkdownMemory,
}

/// A clock that shows the time it was set to.
pub(crate) struct FixedClock(AtomicI64);

impl FixedClock {
    pub(crate) fn set(&self, time: Time) {
        self.0.store(time.micros(), Ordering::Relaxed);
    }
}

impl Clock for FixedClock {
    fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), [0, 0])
    }

    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// The default settings of tests.
pub(crate) fn settings(index: &Path) -> Settings {
    Settings {
        index: index.join("memory"),
        keep_days: 90,
        expired: OnExpiry::Archive,
        soft_limit_bytes: 1000,
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let (folder, index) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut settings = settings(index.path());
        change(&mut settings);
        let clock = Arc::new(FixedClock(AtomicI64::new(START_TIME.micros())));
        let memory = MarkdownMemory::new(settings, clock.clone());
        Self { folder, index, clock, memory }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn put(&self, path: &str, text: impl AsRef<[u8]>) {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) async fn write(
        &self,
        target: MemoryFile,
        text: &str,
    ) -> Result<SavedEntry, MemoryError> {
        self.memory.write(self.folder.path(), MemoryEntry::new(target, text)).await
    }

    pub(crate) async fn note(&self, text: &str) -> SavedEntry {
        self.write(MemoryFile::LongTerm, text).await.unwrap()
    }

    pub(crate) async fn search_result(
        &self,
        text: &str,
        kind: Option<MemoryFile>,
    ) -> Result<Vec<MemoryMatch>, MemoryError> {
        Ok(self.search(text, kind).await?.passages)
    }

    pub(crate) async fn search(
        &self,
        text: &str,
        kind: Option<MemoryFile>,
    ) -> Result<SearchResult, MemoryError> {
        let query = MemoryQuery { text: text.into(), kind, limit: None };
        self.memory.search(self.folder.path(), query).await
    }

    /// Enables search by meaning, as after a restart of the daemon.
    pub(crate) fn embed_with(&mut self, embedder: &Arc<FakeEmbedder>) {
        let memory = MarkdownMemory::new(settings(self.index.path()), self.clock.clone());
        self.memory = memory.with_embedder(embedder.clone());
    }

    /// The results, as `path:first-last`.
    pub(crate) async fn places(&self, text: &str) -> Vec<String> {
        let found = self.search_result(text, None).await.unwrap();
        found.iter().map(|f| format!("{}:{}-{}", f.path, f.line_start, f.line_end)).collect()
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        first: u64,
        last: u64,
    ) -> Result<Passage, MemoryError> {
        let lines = LineRange { first, last: Some(last) };
        self.memory.get(self.folder.path(), path, lines).await
    }

    /// The only file of the index.
    pub(crate) fn index_file(&self) -> PathBuf {
        let files = self.index.path().join("memory").read_dir().unwrap();
        let is_index = |path: &PathBuf| path.extension().is_some_and(|end| end == "sqlite");
        files.map(|entry| entry.unwrap().path()).find(is_index).unwrap()
    }
}
