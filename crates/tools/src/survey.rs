//! What a model should know of a workspace before it begins: the bundle of context.
//!
//! Gathering never fails: what cannot be read, or takes too long, is left out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quintet_kernel::context::Section;
use tokio::time::timeout;

use crate::blocking::{Flag, wanted};
use crate::map::{Form, Ground, Mapper};
use crate::run::{End, Runner};
use crate::survey::glance::Glance;
use crate::{agents, git, repository, tokens};

mod cut;
mod glance;
mod tree;

pub(crate) use glance::{MARKS, around};

/// How long git or the map may hold up a turn. What the map has read by then is remembered, so the
/// next one gets further.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// Of how many workspaces it is remembered what was gathered.
const MOST_KNOWN: usize = 16;

/// Gathers what is to be known of workspaces.
#[derive(Clone)]
pub(crate) struct Survey {
    mapper: Arc<Mapper>,
    runner: Arc<Runner>,
    /// What was gathered last, the last used last.
    known: Arc<Mutex<Vec<Known>>>,
    /// How workspaces looked last, the last looked at last.
    glances: Arc<Mutex<Vec<(PathBuf, Glance)>>>,
}

/// What there is to say of a workspace.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) sections: Vec<Section>,
    /// Where it was looked for; nothing if not all of it could be gathered.
    pub(crate) ground: Option<Arc<Ground>>,
}

/// What was gathered of a workspace.
struct Known {
    workspace: PathBuf,
    tokens: usize,
    /// How it looked then.
    print: u64,
    sections: Vec<Section>,
}

impl Survey {
    pub(crate) fn new(mapper: Arc<Mapper>, runner: Arc<Runner>) -> Self {
        Self { mapper, runner, known: Arc::default(), glances: Arc::default() }
    }

    /// Gathers the sections that there is something to say in, within so many tokens.
    ///
    /// `AGENTS.md` gets up to half of them, the tree up to a quarter, what git says up to a tenth,
    /// and the map what is left. Nothing goes on once nobody waits for it any more.
    pub(crate) async fn gather(&self, workspace: &Path, budget_tokens: usize) -> Gathered {
        let glance = self.glance(workspace).await;
        let (print, ground) = (glance.print, glance.ground());
        if let Some(known) = print.and_then(|print| self.recall(workspace, budget_tokens, print)) {
            return Gathered { sections: known, ground: Some(ground) };
        }
        let (sections, whole) = self.read(workspace, glance.files().into(), budget_tokens).await;
        let Some(print) = print.filter(|_| whole) else {
            return Gathered { sections, ground: None };
        };
        let known = sections.clone();
        let (workspace, tokens) = (workspace.to_owned(), budget_tokens);
        self.remember(Known { workspace, tokens, print, sections: known });
        Gathered { sections, ground: Some(ground) }
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

    async fn glance(&self, workspace: &Path) -> Glance {
        let (owned, last) = (workspace.to_owned(), self.last(workspace));
        let glance = wanted(move |flag| Glance::take(&owned, last.as_ref(), flag)).await;
        let glance = glance.unwrap_or_default();
        if glance.print.is_some() {
            let mut glances = self.glances.lock().unwrap_or_else(PoisonError::into_inner);
            glances.retain(|(of, _)| of != workspace);
            if glances.len() >= MOST_KNOWN {
                glances.remove(0);
            }
            glances.push((workspace.to_owned(), glance.clone()));
        }
        glance
    }

    /// The last glance at a workspace.
    fn last(&self, workspace: &Path) -> Option<Glance> {
        let glances = self.glances.lock().unwrap_or_else(PoisonError::into_inner);
        glances.iter().find(|(of, _)| of == workspace).map(|(_, glance)| glance.clone())
    }

    /// What was gathered, if the workspace still looks as it did.
    fn recall(&self, workspace: &Path, tokens: usize, print: u64) -> Option<Vec<Section>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Known| known.workspace == workspace && known.tokens == tokens;
        known.iter().find(same).filter(|known| known.print == print).map(|it| it.sections.clone())
    }

    fn remember(&self, new: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|old| old.workspace != new.workspace || old.tokens != new.tokens);
        if known.len() >= MOST_KNOWN {
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
            Form { within: PathBuf::new(), max_symbols: usize::MAX, max_tokens, lines: false };
        let draw = wanted(move |flag| mapper.draw(&workspace, &files, &form, flag));
        timeout(LOOK_TIMEOUT, draw).await.ok().flatten()
    }

    /// What git says; nothing if it says nothing in time.
    async fn status(&self, workspace: &Path) -> Option<String> {
        if !repository::is_around(workspace) {
            return Some(String::new());
        }
        let context = git::quiet();
        match timeout(LOOK_TIMEOUT, git::status(&self.runner, workspace, &context)).await {
            Ok(Ok(finished)) if finished.end == End::Exited(0) => Some(finished.stdout.text()),
            // It cannot look, as at a repository of somebody else's; nor will it later.
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
    let read = move |_: &Flag| {
        let mut notices = agents::around(&workspace);
        notices.extend(agents::nested(&workspace, &files));
        let agents = cut::lines(&agents::text(&notices), budget_tokens / 2);
        (agents, tree::text(&files, budget_tokens / 4))
    };
    wanted(read).await.unwrap_or_default()
}
