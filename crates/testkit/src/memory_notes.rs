//! Notes in memory, without files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use quintet_kernel::context::Section;
use quintet_kernel::memory::{
    LineRange, MemoryEntry, MemoryError, MemoryFile, MemoryMatch, MemoryQuery, Passage, SavedEntry,
    SearchMethod, SearchResult,
};
use quintet_kernel::port::{BoxFuture, Memory};

/// One set of notes for all workspaces. Searches for whole words and ignores dates.
#[derive(Debug, Default)]
pub struct MemoryNotes {
    files: Mutex<BTreeMap<String, Vec<String>>>,
    trouble: Mutex<Option<MemoryError>>,
}

impl MemoryNotes {
    /// Empty notes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes all later writes fail with this error.
    pub fn fail_with(&self, error: MemoryError) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The lines of a file.
    pub fn lines(&self, path: &str) -> Vec<String> {
        self.files().get(path).cloned().unwrap_or_default()
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, Vec<String>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, entry: &MemoryEntry) -> Result<SavedEntry, MemoryError> {
        if let Some(error) = &*self.trouble.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(error.clone());
        }
        let path = match (entry.target, entry.once) {
            (MemoryFile::LongTerm, _) => "memory/MEMORY.md".to_owned(),
            (MemoryFile::Daily, Some(at)) => format!("memory/{}.md", at.day()),
            (MemoryFile::Daily, None) => "memory/2025-01-01.md".to_owned(),
        };
        let mut files = self.files();
        let file = files.entry(path.clone()).or_default();
        let new: Vec<String> = entry.content.lines().map(Into::into).collect();
        let there = file.windows(new.len().max(1)).position(|lines| *lines == *new);
        let at = there.filter(|_| entry.once.is_some()).unwrap_or_else(|| {
            file.extend(new.iter().cloned());
            file.len() - new.len()
        });
        let (line_start, line_end) = (at as u64 + 1, (at + new.len()) as u64);
        Ok(SavedEntry { path, line_start, line_end, warning: None })
    }

    fn find(&self, query: &MemoryQuery) -> Result<SearchResult, MemoryError> {
        if query.text.trim().is_empty() {
            return Err(MemoryError::BadQuery("it is empty"));
        }
        let mut found = Vec::new();
        for (path, lines) in self.files().iter() {
            for (n, line) in lines.iter().enumerate() {
                if line.split(' ').any(|word| query.text.split(' ').any(|wanted| wanted == word)) {
                    let (path, line_start, line_end) = (path.clone(), n as u64 + 1, n as u64 + 1);
                    let excerpt = line.clone();
                    found.push(MemoryMatch { path, excerpt, line_start, line_end, score: 1.0 });
                }
            }
        }
        found.truncate(query.limit.unwrap_or(8));
        let method = SearchMethod::Words { reason: "these notes have no vectors".into() };
        Ok(SearchResult { passages: found, method })
    }

    fn passage(&self, path: &str, lines: LineRange) -> Result<Passage, MemoryError> {
        let files = self.files();
        let all = files.get(path).ok_or_else(|| MemoryError::NotFound(path.into()))?;
        let first = lines.first.max(1);
        let last = lines.last.unwrap_or(u64::MAX).min(all.len() as u64);
        let at = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
        let text = all.get(at(first - 1)..at(last)).unwrap_or_default().join("\n");
        let (path, lines) = (path.into(), all.len() as u64);
        Ok(Passage { path, text, line_start: first, line_end: last, lines })
    }
}

impl Memory for MemoryNotes {
    fn write<'a>(
        &'a self,
        _: &'a Path,
        entry: MemoryEntry,
    ) -> BoxFuture<'a, Result<SavedEntry, MemoryError>> {
        Box::pin(std::future::ready(self.add(&entry)))
    }

    fn search<'a>(
        &'a self,
        _: &'a Path,
        query: MemoryQuery,
    ) -> BoxFuture<'a, Result<SearchResult, MemoryError>> {
        Box::pin(std::future::ready(self.find(&query)))
    }

    fn get<'a>(
        &'a self,
        _: &'a Path,
        path: &'a str,
        lines: LineRange,
    ) -> BoxFuture<'a, Result<Passage, MemoryError>> {
        Box::pin(std::future::ready(self.passage(path, lines)))
    }

    fn bootstrap<'a>(&'a self, _: &'a Path, _: u64) -> BoxFuture<'a, Vec<Section>> {
        let section = |(title, lines): (&String, &Vec<String>)| Section {
            title: title.clone(),
            text: lines.join("\n"),
        };
        Box::pin(std::future::ready(self.files().iter().map(section).collect()))
    }
}
