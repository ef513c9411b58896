//! Assesses the risk of changes to files.

use std::path::{Path, PathBuf};

use quintet_kernel::tool::{Assessment, CallSubject, Risk};

use super::Change;
use crate::git::{self, CommittedState};
use crate::run::Runner;
use crate::subject::{self, FileAccess};
use crate::{blocking, show};

/// How many files are named one by one.
const NAMED_LIMIT: usize = 20;

/// The assessment of changes that a user sees before they are made.
pub(crate) async fn assess(runner: &Runner, root: &Path, changes: Vec<Change>) -> Assessment {
    let mut reasons: Vec<_> = changes.iter().take(NAMED_LIMIT).map(Change::describe).collect();
    if changes.len() > NAMED_LIMIT {
        reasons.push(format!("and {} more", show::count(changes.len() - NAMED_LIMIT, "file")));
    }
    let (mut risk, mut reversible) = (Risk::Medium, true);
    let there: Vec<_> = changes.iter().filter_map(Change::there).collect();
    let kept = kept(runner, root, &there).await;
    reasons.extend(kept.map(|kept| under_control(kept).to_owned()));
    let lost: Vec<_> = changes.iter().filter_map(Change::loses).collect();
    let lost = if lost.len() == there.len() { kept } else { self::kept(runner, root, &lost).await };
    match lost {
        Some(CommittedState::Committed) | None => (),
        Some(CommittedState::Older) => {
            reversible = false;
            reasons.push("loses changes that were not committed".to_owned());
        }
        Some(CommittedState::Nowhere) => {
            (risk, reversible) = (Risk::High, false);
            reasons.push("loses content that is not under version control".to_owned());
        }
    }
    if changes.iter().any(Change::is_delicate) {
        risk = Risk::High;
        reasons.push("changes git's own files, which can make git run commands".to_owned());
    }
    let root = root.to_owned();
    let shown = blocking::run_to_end(move || {
        let diffs: String = changes.iter().map(Change::diff).collect();
        let paths = changes.iter().flat_map(Change::paths);
        Ok((show::preview(&diffs), subject::of(&root, FileAccess::Changes, paths)))
    });
    let (preview, mut subject) =
        shown.await.unwrap_or_else(|error| (error, CallSubject::default()));
    // A change that can lose work always needs its own approval.
    subject.similar.take_if(|_| risk >= Risk::High);
    Assessment { risk, reasons, reversible, preview, subject, settled: None }
}

/// Whether git could give these files back; nothing if there are none.
async fn kept(runner: &Runner, root: &Path, paths: &[&Path]) -> Option<CommittedState> {
    if paths.is_empty() { None } else { Some(git::kept(runner, root, paths).await) }
}

fn under_control(kept: CommittedState) -> &'static str {
    match kept {
        CommittedState::Committed => "what it changes is under version control",
        CommittedState::Older => {
            "what it changes is under version control, but not its latest changes"
        }
        CommittedState::Nowhere => "what it changes is not under version control",
    }
}

/// The assessment of changes to these files that cannot be made in their current state.
///
/// The call is not refused yet: by the time it runs, an earlier call may have changed the files.
pub(crate) async fn inapplicable(root: &Path, paths: Vec<PathBuf>, why: &str) -> Assessment {
    Assessment {
        risk: Risk::Medium,
        reasons: vec![format!("as the files are now, nothing will be changed: {why}")],
        reversible: true,
        preview: String::new(),
        subject: subject::looked_up(root, FileAccess::Changes, paths).await,
        settled: None,
    }
}
