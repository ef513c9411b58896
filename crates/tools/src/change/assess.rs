//! How bad changes to files can get.

use std::path::Path;

use quintet_kernel::tool::{Assessment, Risk, Subject};

use super::Change;
use crate::git::{self, Kept};
use crate::run::Runner;
use crate::{blocking, show};

/// How many files are named one by one.
const MOST_NAMED: usize = 20;

/// What a person is shown before they are made.
pub(crate) async fn assess(runner: &Runner, root: &Path, changes: Vec<Change>) -> Assessment {
    let mut reasons: Vec<_> = changes.iter().take(MOST_NAMED).map(Change::describe).collect();
    if changes.len() > MOST_NAMED {
        reasons.push(format!("and {} more", show::count(changes.len() - MOST_NAMED, "file")));
    }
    let (mut risk, mut reversible) = (Risk::Medium, true);
    let lost: Vec<_> = changes.iter().filter_map(Change::loses).collect();
    let kept = if lost.is_empty() { Kept::Committed } else { git::kept(runner, root, &lost).await };
    match kept {
        Kept::Committed => (),
        Kept::Older => {
            reversible = false;
            reasons.push("loses changes that were not committed".to_owned());
        }
        Kept::Nowhere => {
            (risk, reversible) = (Risk::High, false);
            reasons.push("loses content that is not under version control".to_owned());
        }
    }
    if changes.iter().any(Change::is_delicate) {
        risk = Risk::High;
        reasons.push("changes git's own files, which can make git run commands".to_owned());
    }
    let preview = blocking::change(move || {
        let diffs: String = changes.iter().map(Change::diff).collect();
        Ok(show::preview(&diffs))
    });
    let preview = preview.await.unwrap_or_else(|error| error);
    Assessment { risk, reasons, reversible, preview, subject: Subject::default(), settled: None }
}

/// What a person is shown of changes that cannot be made as things are.
///
/// This is not idle: by the time it runs, an earlier call may have changed the files.
pub(crate) fn inapplicable(why: &str) -> Assessment {
    Assessment {
        risk: Risk::Medium,
        reasons: vec![format!("as the files are now, nothing will be changed: {why}")],
        reversible: true,
        preview: String::new(),
        subject: Subject::default(),
        settled: None,
    }
}
