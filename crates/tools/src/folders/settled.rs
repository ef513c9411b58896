//! What was found in workspaces that nothing has changed in since, as sentries over them know.
//!
//! A turn in such a workspace is not held up by a look at it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::context::Section;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::sentry::{Seen, Sentry};
use crate::map::Ground;

/// How long a sentry's word is enough: it is not told of quite everything.
const TRUST: Duration = Duration::from_secs(60);

/// Over how many workspaces there are sentries.
const MOST: usize = 16;

/// How long nobody is sent where no sentry could be posted: to try takes from what all programs of a
/// user may watch.
const REST: Duration = Duration::from_secs(300);

/// Workspaces with a sentry each.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    posts: Arc<Mutex<Posts>>,
}

#[derive(Debug, Default)]
struct Posts {
    /// The last used last.
    list: Vec<Post>,
    /// Where none could be posted, and when.
    refused: Vec<(PathBuf, Instant)>,
    /// How often any sentry was posted.
    posted: u64,
}

/// Which sentry it is, of all that there ever were, and how often it saw something.
type Changes = (u64, u64);

#[derive(Debug)]
struct Post {
    workspace: PathBuf,
    /// What the sentry watches.
    ground: Arc<Ground>,
    sentry: Sentry,
    /// Which sentry it is, of all that there ever were, and how often it saw something.
    changes: Changes,
    /// What was found since then, by how many tokens it may take, and when.
    found: Vec<(u64, Vec<Section>, Instant)>,
}

impl Settled {
    /// What was found last, if nothing has changed since. Never waits for a disk.
    pub(super) fn recall(&self, workspace: &Path, tokens: u64) -> Option<Vec<Section>> {
        let mut posts = self.lock();
        let post = posts.of(workspace)?;
        post.ask();
        let known = post.found.iter().find(|(of, ..)| *of == tokens);
        known.filter(|(.., at)| at.elapsed() < TRUST).map(|(_, sections, _)| sections.clone())
    }

    /// What the sentry over a workspace saw until now; nothing if there is none.
    pub(super) fn changes(&self, workspace: &Path) -> Option<Changes> {
        Some(self.lock().of(workspace)?.ask())
    }

    /// Keeps what a look found on this ground if nothing changed meanwhile. Says whether there is a
    /// sentry over just this ground.
    pub(super) fn keep(&self, look: Look<'_>, ground: &Ground, sections: &[Section]) -> bool {
        let Look { workspace, tokens, changes } = look;
        let mut posts = self.lock();
        let Some(post) = posts.of(workspace) else { return false };
        let quiet = changes == Some(post.ask());
        let watched = post.ground.folders == ground.folders;
        if watched && quiet {
            post.found.retain(|(of, ..)| *of != tokens);
            post.found.push((tokens, sections.to_vec(), Instant::now()));
        }
        watched
    }

    /// Posts a sentry over this ground, and over a folder of it that counts even if it is ignored.
    /// Nobody waits for that: what is found once it stands may be kept.
    pub(super) fn post(&self, workspace: &Path, ground: Arc<Ground>, besides: Option<PathBuf>) {
        let rests = |(of, at): &(PathBuf, Instant)| of == workspace && at.elapsed() < REST;
        if self.lock().refused.iter().any(rests) {
            return;
        }
        let (this, workspace) = (self.clone(), workspace.to_owned());
        spawn_blocking(move || {
            let besides = besides.filter(|folder| workspace.join(folder).is_dir());
            let folders: Vec<&PathBuf> = ground.folders.iter().chain(&besides).collect();
            let posted = Sentry::post(&workspace, folders.into_iter());
            let old = match posted {
                Ok(sentry) => this.lock().relieve(workspace, ground, sentry),
                Err(_) => this.lock().refuse(workspace),
            };
            // The kernel has much to put away with a sentry, so the lock is given back before.
            drop(old);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Posts> {
        self.posts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Posts {
    /// The post over a workspace, which is now the last used.
    fn of(&mut self, workspace: &Path) -> Option<&mut Post> {
        let at = self.list.iter().position(|post| post.workspace == workspace)?;
        self.list[at..].rotate_left(1);
        self.list.last_mut()
    }

    /// Puts a sentry in its place. Gives the one that was there, or that there is no room for.
    fn relieve(&mut self, workspace: PathBuf, ground: Arc<Ground>, sentry: Sentry) -> Option<Post> {
        let same = self.list.iter().position(|post| post.workspace == workspace);
        let gone = same.or_else(|| (self.list.len() >= MOST).then_some(0));
        let old = gone.map(|at| self.list.remove(at));
        self.posted += 1;
        let (changes, found) = ((self.posted, 0), Vec::new());
        self.list.push(Post { workspace, ground, sentry, changes, found });
        old
    }

    /// Notes that there can be none. Gives the one that was there.
    fn refuse(&mut self, workspace: PathBuf) -> Option<Post> {
        let same = self.list.iter().position(|post| post.workspace == workspace);
        self.refused.retain(|(of, at)| *of != workspace && at.elapsed() < REST);
        self.refused.push((workspace, Instant::now()));
        same.map(|at| self.list.remove(at))
    }
}

/// A look at a workspace: how many tokens what it finds may take, and the changes seen before it.
pub(super) struct Look<'a> {
    pub(super) workspace: &'a Path,
    pub(super) tokens: u64,
    pub(super) changes: Option<Changes>,
}

impl Post {
    /// Asks the sentry, and forgets what was found before it saw something.
    fn ask(&mut self) -> Changes {
        match self.sentry.ask() {
            Seen::Nothing => {}
            Seen::Change => self.forget(),
            Seen::Move => {
                self.forget();
                // Whatever is found next is found elsewhere, and another sentry is posted there.
                self.ground = Arc::default();
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

    /// A workspace with a sentry.
    struct Guarded {
        settled: Settled,
        ground: Arc<Ground>,
        dir: TempDir,
    }

    impl Guarded {
        async fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            create_dir(dir.path().join("memory")).unwrap();
            let ground = Ground { files: Vec::new(), folders: vec![PathBuf::new()] };
            let this = Self { settled: Settled::default(), ground: ground.into(), dir };
            this.settled.post(this.root(), this.ground.clone(), Some("memory".into()));
            while this.settled.changes(this.root()).is_none() {
                yield_now().await;
            }
            this
        }

        fn root(&self) -> &Path {
            self.dir.path()
        }

        /// Keeps what a look found that began after so many changes.
        fn keep(&self, changes: Option<Changes>) -> bool {
            let look = Look { workspace: self.root(), tokens: 9, changes };
            self.settled.keep(
                look,
                &self.ground,
                &[Section { title: "T".into(), text: "t".into() }],
            )
        }

        fn is_known(&self) -> bool {
            self.settled.recall(self.root(), 9).is_some()
        }
    }

    #[tokio::test]
    async fn what_was_found_is_known_until_something_changes() {
        let guarded = Guarded::new().await;
        assert!(!guarded.is_known());
        for file in ["a", "memory/notes.md"] {
            assert!(guarded.keep(guarded.settled.changes(guarded.root())));
            assert!(guarded.is_known() && guarded.is_known());
            assert_eq!(guarded.settled.recall(guarded.root(), 8), None, "it may take less");
            write(guarded.root().join(file), "new").unwrap();
            assert!(!guarded.is_known() && !guarded.is_known());
        }
    }

    #[tokio::test]
    async fn what_changed_during_a_look_is_not_kept() {
        let guarded = Guarded::new().await;
        let before = guarded.settled.changes(guarded.root());
        write(guarded.root().join("a"), "new").unwrap();
        // Another turn asks meanwhile, so the sentry has nothing to tell any more.
        assert!(!guarded.is_known());
        assert!(guarded.keep(before));
        assert!(!guarded.is_known());
    }

    #[tokio::test]
    async fn a_look_under_one_sentry_is_not_kept_by_the_next() {
        let guarded = Guarded::new().await;
        let before = guarded.settled.changes(guarded.root());
        guarded.settled.post(guarded.root(), guarded.ground.clone(), None);
        while guarded.settled.changes(guarded.root()) == before {
            yield_now().await;
        }
        assert!(guarded.keep(before));
        assert!(!guarded.is_known());
    }

    #[tokio::test]
    async fn where_no_sentry_can_be_none_is_sent_again_at_once() {
        let (settled, nowhere) = (Settled::default(), Path::new("/nowhere"));
        settled.post(nowhere, Arc::default(), None);
        while settled.lock().refused.is_empty() {
            yield_now().await;
        }
        let since = settled.lock().refused[0].1;
        settled.post(nowhere, Arc::default(), None);
        assert_eq!(settled.lock().refused[0].1, since);
    }

    #[tokio::test]
    async fn a_new_folder_needs_a_new_sentry() {
        let guarded = Guarded::new().await;
        create_dir(guarded.root().join("src")).unwrap();
        assert!(!guarded.keep(guarded.settled.changes(guarded.root())));
        assert!(!guarded.is_known());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_goes_by_a_sentrys_word_for_long() {
        let guarded = Guarded::new().await;
        assert!(guarded.keep(guarded.settled.changes(guarded.root())));
        tokio::time::advance(TRUST).await;
        assert!(!guarded.is_known());
    }
}
