//! Surveys of workspaces, kept until a watcher sees a change.
//!
//! A turn in a workspace in which nothing changed does not wait for a survey.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::context::Section;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::watcher::{InotifyWatcher, Observed};
use crate::repository_map::WorkspaceFiles;

/// How long a survey is used, because a watcher does not see every change.
const CACHE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many workspaces are watched.
const WORKSPACES_LIMIT: usize = 16;

/// How long until a workspace is tried again that could not be watched: to try uses up some of what all
/// programs of a user may watch.
const RETRY_INTERVAL: Duration = Duration::from_secs(300);

/// Surveys of workspaces with a watcher each.
#[derive(Clone, Debug, Default)]
pub(super) struct SurveyCache {
    watched: Arc<Mutex<WatchedWorkspaces>>,
}

#[derive(Debug, Default)]
struct WatchedWorkspaces {
    /// The last used last.
    list: Vec<WatchedWorkspace>,
    /// Workspaces that could not be watched, and since when.
    refused: Vec<(PathBuf, Instant)>,
    /// How many watchers there have been.
    posted: u64,
}

/// The number of a watcher, of all that there have been, and how often it saw a change.
type WatchState = (u64, u64);

#[derive(Debug)]
struct WatchedWorkspace {
    workspace: PathBuf,
    /// What the watcher watches.
    listing: Arc<WorkspaceFiles>,
    watcher: InotifyWatcher,
    /// The number of the watcher, and how often it saw a change.
    changes: WatchState,
    /// The surveys since then, by how many tokens they may take, and when they were made.
    found: Vec<(u64, Vec<Section>, Instant)>,
}

impl SurveyCache {
    /// The last survey, if nothing has changed since. Never waits for a disk.
    pub(super) fn cached(&self, workspace: &Path, tokens: u64) -> Option<Vec<Section>> {
        let mut watched = self.lock();
        let post = watched.of(workspace)?;
        post.poll();
        let known = post.found.iter().find(|(of, ..)| *of == tokens);
        known
            .filter(|(.., at)| at.elapsed() < CACHE_TIMEOUT)
            .map(|(_, sections, _)| sections.clone())
    }

    /// The state of the watcher of a workspace; `None` if there is none.
    pub(super) fn changes(&self, workspace: &Path) -> Option<WatchState> {
        Some(self.lock().of(workspace)?.poll())
    }

    /// Keeps a survey of these files if nothing changed meanwhile. True if just these are watched.
    pub(super) fn keep(
        &self,
        look: SurveyRequest<'_>,
        listing: &WorkspaceFiles,
        sections: &[Section],
    ) -> bool {
        let SurveyRequest { workspace, tokens, changes } = look;
        let mut watched = self.lock();
        let Some(post) = watched.of(workspace) else { return false };
        let quiet = changes == Some(post.poll());
        let watched = post.listing.folders == listing.folders;
        if watched && quiet {
            post.found.retain(|(of, ..)| *of != tokens);
            post.found.push((tokens, sections.to_vec(), Instant::now()));
        }
        watched
    }

    /// Starts to watch these files, and a folder that is watched even if it is ignored. Runs in the background:
    /// surveys made after it started can be cached.
    pub(super) fn watch(
        &self,
        workspace: &Path,
        listing: Arc<WorkspaceFiles>,
        besides: Option<PathBuf>,
    ) {
        let rests =
            |(of, at): &(PathBuf, Instant)| of == workspace && at.elapsed() < RETRY_INTERVAL;
        if self.lock().refused.iter().any(rests) {
            return;
        }
        let (this, workspace) = (self.clone(), workspace.to_owned());
        spawn_blocking(move || {
            let besides = besides.filter(|folder| workspace.join(folder).is_dir());
            let folders: Vec<&PathBuf> = listing.folders.iter().chain(&besides).collect();
            let posted = InotifyWatcher::new(&workspace, folders.into_iter());
            let old = match posted {
                Ok(watcher) => this.lock().replace(workspace, listing, watcher),
                Err(_) => this.lock().mark_unwatchable(workspace),
            };
            // To close a watcher takes the kernel a while, so the lock is given back before.
            drop(old);
        });
    }

    fn lock(&self) -> MutexGuard<'_, WatchedWorkspaces> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedWorkspaces {
    /// The post over a workspace, which is now the last used.
    fn of(&mut self, workspace: &Path) -> Option<&mut WatchedWorkspace> {
        let at = self.list.iter().position(|post| post.workspace == workspace)?;
        self.list[at..].rotate_left(1);
        self.list.last_mut()
    }

    /// Adds a watcher. Returns the previous one, or the oldest if there are too many.
    fn replace(
        &mut self,
        workspace: PathBuf,
        listing: Arc<WorkspaceFiles>,
        watcher: InotifyWatcher,
    ) -> Option<WatchedWorkspace> {
        let same = self.list.iter().position(|post| post.workspace == workspace);
        let gone = same.or_else(|| (self.list.len() >= WORKSPACES_LIMIT).then_some(0));
        let old = gone.map(|at| self.list.remove(at));
        self.posted += 1;
        let (changes, found) = ((self.posted, 0), Vec::new());
        self.list.push(WatchedWorkspace { workspace, listing, watcher, changes, found });
        old
    }

    /// Marks a workspace as unwatchable. Returns the previous watcher.
    fn mark_unwatchable(&mut self, workspace: PathBuf) -> Option<WatchedWorkspace> {
        let same = self.list.iter().position(|post| post.workspace == workspace);
        self.refused.retain(|(of, at)| *of != workspace && at.elapsed() < RETRY_INTERVAL);
        self.refused.push((workspace, Instant::now()));
        same.map(|at| self.list.remove(at))
    }
}

/// A request for a survey: its token budget, and the watcher's state before it.
pub(super) struct SurveyRequest<'a> {
    pub(super) workspace: &'a Path,
    pub(super) tokens: u64,
    pub(super) changes: Option<WatchState>,
}

impl WatchedWorkspace {
    /// Asks the watcher, and drops the surveys from before it saw something.
    fn poll(&mut self) -> WatchState {
        match self.watcher.poll() {
            Observed::Nothing => {}
            Observed::Change => self.forget(),
            Observed::Move => {
                self.forget();
                // The next survey looks elsewhere, and another watcher is made for that.
                self.listing = Arc::default();
            }
        }
        self.changes
    }

    fn forget(&mut self) {
        self.changes.1 += 1;
        self.found.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, write};

    use tempfile::TempDir;
    use tokio::task::yield_now;

    use super::*;

    /// A workspace with a watcher.
    struct Guarded {
        cache: SurveyCache,
        listing: Arc<WorkspaceFiles>,
        dir: TempDir,
    }

    impl Guarded {
        async fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            create_dir(dir.path().join("memory")).unwrap();
            let listing = WorkspaceFiles { files: Vec::new(), folders: vec![PathBuf::new()] };
            let this = Self { cache: SurveyCache::default(), listing: listing.into(), dir };
            this.cache.watch(this.root(), this.listing.clone(), Some("memory".into()));
            while this.cache.changes(this.root()).is_none() {
                yield_now().await;
            }
            this
        }

        fn root(&self) -> &Path {
            self.dir.path()
        }

        /// Keeps what a look found that began after so many changes.
        fn keep(&self, changes: Option<WatchState>) -> bool {
            let look = SurveyRequest { workspace: self.root(), tokens: 9, changes };
            self.cache.keep(look, &self.listing, &[Section { title: "T".into(), text: "t".into() }])
        }

        fn is_known(&self) -> bool {
            self.cache.cached(self.root(), 9).is_some()
        }
    }

    #[tokio::test]
    async fn a_survey_is_kept_until_something_changes() {
        let guarded = Guarded::new().await;
        assert!(!guarded.is_known());
        for file in ["a", "memory/notes.md"] {
            assert!(guarded.keep(guarded.cache.changes(guarded.root())));
            assert!(guarded.is_known() && guarded.is_known());
            assert_eq!(guarded.cache.cached(guarded.root(), 8), None, "it may take less");
            write(guarded.root().join(file), "new").unwrap();
            assert!(!guarded.is_known() && !guarded.is_known());
        }
    }

    #[tokio::test]
    async fn a_survey_during_which_something_changed_is_not_kept() {
        let guarded = Guarded::new().await;
        let before = guarded.cache.changes(guarded.root());
        write(guarded.root().join("a"), "new").unwrap();
        // Another turn asks meanwhile, so the watcher has nothing to tell any more.
        assert!(!guarded.is_known());
        assert!(guarded.keep(before));
        assert!(!guarded.is_known());
    }

    #[tokio::test]
    async fn a_survey_under_one_watcher_is_not_kept_by_the_next() {
        let guarded = Guarded::new().await;
        let before = guarded.cache.changes(guarded.root());
        guarded.cache.watch(guarded.root(), guarded.listing.clone(), None);
        while guarded.cache.changes(guarded.root()) == before {
            yield_now().await;
        }
        assert!(guarded.keep(before));
        assert!(!guarded.is_known());
    }

    #[tokio::test]
    async fn what_cannot_be_watched_is_not_tried_again_at_once() {
        let (cache, nowhere) = (SurveyCache::default(), Path::new("/nowhere"));
        cache.watch(nowhere, Arc::default(), None);
        while cache.lock().refused.is_empty() {
            yield_now().await;
        }
        let since = cache.lock().refused[0].1;
        cache.watch(nowhere, Arc::default(), None);
        assert_eq!(cache.lock().refused[0].1, since);
    }

    #[tokio::test]
    async fn a_new_folder_needs_a_new_watcher() {
        let guarded = Guarded::new().await;
        create_dir(guarded.root().join("src")).unwrap();
        assert!(!guarded.keep(guarded.cache.changes(guarded.root())));
        assert!(!guarded.is_known());
    }

    #[tokio::test(start_paused = true)]
    async fn a_survey_is_not_used_for_long() {
        let guarded = Guarded::new().await;
        assert!(guarded.keep(guarded.cache.changes(guarded.root())));
        tokio::time::advance(CACHE_TIMEOUT).await;
        assert!(!guarded.is_known());
    }
}
