//! Surveys a workspace: the context that a model gets before it begins.
//!
//! A survey never fails: what cannot be read, or takes too long, is left out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::context::Section;
use tokio::time::timeout;

use crate::blocking::{CancelFlag, run_while_awaited};
use crate::repository_map::{MapStyle, Mapper, WorkspaceFiles};
use crate::run::{End, Runner};
use crate::survey::fingerprint::Fingerprint;
use crate::{agents, git, repository, tokens};

mod cut;
mod fingerprint;
mod tree;

pub(crate) use fingerprint::{MARKS, around};

/// How long git or the map may hold up a turn. What the map has read by then is remembered, so the
/// next one gets further.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Of how many workspaces it is remembered what was gathered.
const CACHED_LIMIT: usize = 16;

/// Surveys workspaces.
#[derive(Clone)]
pub(crate) struct Survey {
    mapper: Arc<Mapper>,
    runner: Arc<Runner>,
    /// What was gathered last, the last used last.
    known: Arc<Mutex<Vec<CachedSurvey>>>,
    /// The latest fingerprints of workspaces, most recently used last.
    fingerprints: Arc<Mutex<Vec<(PathBuf, Fingerprint)>>>,
}

/// The result of a survey.
#[derive(Debug, Default)]
pub(crate) struct WorkspaceSurvey {
    pub(crate) sections: Vec<Section>,
    /// Where it was looked for; nothing if not all of it could be gathered.
    pub(crate) listing: Option<Arc<WorkspaceFiles>>,
}

/// What was gathered of a workspace.
struct CachedSurvey {
    workspace: PathBuf,
    tokens: usize,
    /// How it looked then.
    print: u64,
    sections: Vec<Section>,
}

impl Survey {
    pub(crate) fn new(mapper: Arc<Mapper>, runner: Arc<Runner>) -> Self {
        Self { mapper, runner, known: Arc::default(), fingerprints: Arc::default() }
    }

    /// Collects the non-empty sections, within a number of tokens.
    ///
    /// `AGENTS.md` gets up to half of them, the tree up to a quarter, the git status up to a tenth,
    /// and the map the rest. Stops when the caller is gone.
    pub(crate) async fn gather(&self, workspace: &Path, budget_tokens: usize) -> WorkspaceSurvey {
        let fingerprint = self.fingerprint(workspace).await;
        let (print, listing) = (fingerprint.print, fingerprint.listing());
        if let Some(known) = print.and_then(|print| self.cached(workspace, budget_tokens, print)) {
            return WorkspaceSurvey { sections: known, listing: Some(listing) };
        }
        let (sections, whole) =
            self.read(workspace, fingerprint.files().into(), budget_tokens).await;
        let Some(print) = print.filter(|_| whole) else {
            return WorkspaceSurvey { sections, listing: None };
        };
        let known = sections.clone();
        let (workspace, tokens) = (workspace.to_owned(), budget_tokens);
        self.remember(CachedSurvey { workspace, tokens, print, sections: known });
        WorkspaceSurvey { sections, listing: Some(listing) }
    }

    /// The sections, and whether all of them could be gathered.
    async fn read(
        &self,
        workspace: &Path,
        files: Arc<[PathBuf]>,
        budget_tokens: usize,
    ) -> (Vec<Section>, bool) {
        let texts = texts(workspace, files.clone(), budget_tokens);
        let ((agents, tree), status) = tokio::join!(texts, self.status(workspace));
        let listed = cut::lines(status.as_deref().unwrap_or_default(), budget_tokens / 10);
        let used = [&agents, &tree, &listed].map(|text| tokens::count(text)).iter().sum();
        let map = self.map(workspace, files, budget_tokens.saturating_sub(used)).await;
        let whole = status.is_some() && map.is_some();
        let sections = [
            section("AGENTS.md", agents),
            section("REPO TREE", tree),
            section("REPO MAP", map.unwrap_or_default()),
            section("GIT STATUS", listed),
        ];
        (sections.into_iter().filter(|section| !section.text.is_empty()).collect(), whole)
    }

    async fn fingerprint(&self, workspace: &Path) -> Fingerprint {
        let (owned, last) = (workspace.to_owned(), self.last(workspace));
        let fingerprint =
            run_while_awaited(move |flag| Fingerprint::take(&owned, last.as_ref(), flag)).await;
        let fingerprint = fingerprint.unwrap_or_default();
        if fingerprint.print.is_some() {
            let mut fingerprints = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
            fingerprints.retain(|(of, _)| of != workspace);
            if fingerprints.len() >= CACHED_LIMIT {
                fingerprints.remove(0);
            }
            fingerprints.push((workspace.to_owned(), fingerprint.clone()));
        }
        fingerprint
    }

    /// The last fingerprint at a workspace.
    fn last(&self, workspace: &Path) -> Option<Fingerprint> {
        let fingerprints = self.fingerprints.lock().unwrap_or_else(PoisonError::into_inner);
        fingerprints
            .iter()
            .find(|(of, _)| of == workspace)
            .map(|(_, fingerprint)| fingerprint.clone())
    }

    /// What was gathered, if the workspace still looks as it did.
    fn cached(&self, workspace: &Path, tokens: usize, print: u64) -> Option<Vec<Section>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&CachedSurvey| known.workspace == workspace && known.tokens == tokens;
        known.iter().find(same).filter(|known| known.print == print).map(|it| it.sections.clone())
    }

    fn remember(&self, new: CachedSurvey) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|old| old.workspace != new.workspace || old.tokens != new.tokens);
        if known.len() >= CACHED_LIMIT {
            known.remove(0);
        }
        known.push(new);
    }

    /// The map, without line numbers so that it stays the same while code moves.
    async fn map(
        &self,
        workspace: &Path,
        files: Arc<[PathBuf]>,
        max_tokens: usize,
    ) -> Option<String> {
        let (mapper, workspace) = (self.mapper.clone(), workspace.to_owned());
        let form =
            MapStyle { within: PathBuf::new(), max_symbols: usize::MAX, max_tokens, lines: false };
        let draw = run_while_awaited(move |flag| mapper.draw(&workspace, &files, &form, flag));
        timeout(LOOK_TIMEOUT, draw).await.ok().flatten()
    }

    /// The git status; `None` if it does not arrive in time.
    async fn status(&self, workspace: &Path) -> Option<String> {
        if !repository::is_around(workspace) {
            return Some(String::new());
        }
        let context = git::quiet();
        match timeout(LOOK_TIMEOUT, git::status(&self.runner, workspace, &context)).await {
            Ok(Ok(finished)) if finished.end == End::Exited(0) => Some(finished.stdout.text()),
            // Git refuses, for example in another user's repository; it will refuse later, too.
            Ok(Ok(finished)) if matches!(finished.end, End::Exited(_)) => Some(String::new()),
            _ => None,
        }
    }
}

fn section(title: &str, text: String) -> Section {
    Section { title: title.to_owned(), text }
}

impl fmt::Debug for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Survey")
    }
}

/// The texts of `AGENTS.md` and of the tree.
async fn texts(workspace: &Path, files: Arc<[PathBuf]>, budget_tokens: usize) -> (String, String) {
    let workspace = workspace.to_owned();
    let read = move |_: &CancelFlag| {
        let mut notices = agents::around(&workspace);
        notices.extend(agents::nested(&workspace, &files));
        let agents = cut::lines(&agents::text(&notices), budget_tokens / 2);
        (agents, tree::text(&files, budget_tokens / 4))
    };
    run_while_awaited(read).await.unwrap_or_default()
}
