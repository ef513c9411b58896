//! What a model should know of a workspace before it begins: the bundle of context.
//!
//! Gathering never fails: what cannot be read, or takes too long, is left out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::context::Section;
use tokio::time::timeout;

use crate::blocking::{Flag, wanted};
use crate::map::{Form, MOST_FILES, Mapper, SKIPPED};
use crate::run::{End, Runner};
use crate::walk::{Next, Walk};
use crate::{agents, git, tokens};

mod cut;
mod tree;

/// How long git or the map may hold up a turn. What the map has read by then is remembered, so the
/// next one gets further.
const PATIENCE: Duration = Duration::from_secs(5);
/// How deep the tree is shown.
const DEPTH: usize = 30;

/// Gathers what is to be known of workspaces.
#[derive(Clone)]
pub(crate) struct Survey {
    mapper: Arc<Mapper>,
    runner: Arc<Runner>,
}

impl Survey {
    pub(crate) fn new(mapper: Arc<Mapper>, runner: Arc<Runner>) -> Self {
        Self { mapper, runner }
    }

    /// Gathers the sections that there is something to say in, within so many tokens.
    ///
    /// `AGENTS.md` gets up to half of them, the tree up to a quarter, what git says up to a tenth,
    /// and the map what is left. Nothing goes on once nobody waits for it any more.
    pub(crate) async fn gather(&self, workspace: &Path, budget_tokens: usize) -> Vec<Section> {
        let files: Arc<[PathBuf]> = self.files(workspace).await.into();
        let texts = texts(workspace, files.clone(), budget_tokens);
        let ((agents, tree), status) = tokio::join!(texts, self.status(workspace));
        let status = cut::lines(&status, budget_tokens / 10);
        let used = [&agents, &tree, &status].map(|text| tokens::count(text)).iter().sum();
        let map = self.map(workspace, files, budget_tokens.saturating_sub(used)).await;
        let sections = [
            section("AGENTS.md", agents),
            section("REPO TREE", tree),
            section("REPO MAP", map),
            section("GIT STATUS", status),
        ];
        sections.into_iter().filter(|section| !section.text.is_empty()).collect()
    }

    async fn files(&self, workspace: &Path) -> Vec<PathBuf> {
        let workspace = workspace.to_owned();
        wanted(move |flag| files(&workspace, flag)).await.unwrap_or_default()
    }

    /// The map, without line numbers so that it stays the same while code moves.
    async fn map(&self, workspace: &Path, files: Arc<[PathBuf]>, max_tokens: usize) -> String {
        let (mapper, workspace) = (self.mapper.clone(), workspace.to_owned());
        let form = Form { max_symbols: usize::MAX, max_tokens, lines: false };
        let draw = wanted(move |flag| mapper.draw(&workspace, &files, flag).text(form));
        timeout(PATIENCE, draw).await.ok().flatten().unwrap_or_default()
    }

    async fn status(&self, workspace: &Path) -> String {
        if !git::is_repository(workspace) {
            return String::new();
        }
        let desk = git::quiet();
        match timeout(PATIENCE, git::status(&self.runner, workspace, &desk)).await {
            Ok(Ok(finished)) if finished.end == End::Exited(0) => finished.stdout.text(),
            _ => String::new(),
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

fn files(workspace: &Path, flag: &Flag) -> Vec<PathBuf> {
    let walk = Walk { workspace, within: None, skipped: &SKIPPED, depth: Some(DEPTH) };
    let mut files = Vec::new();
    let walked = walk.each(flag, |found| {
        files.push(found.path);
        Ok(if files.len() < MOST_FILES { Next::Continue } else { Next::Stop })
    });
    walked.map(|()| files).unwrap_or_default()
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
