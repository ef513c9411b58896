//! Queries git about the workspace. Hooks and monitors of the repository are not run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, CancelSignal, NobodyToAsk, ToolContext, ToolProgress};

use crate::run::{End, Finished, Job, RunError, Runner};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Takes no locks, so that a query does not interfere with a commit.
const GIT: &str = "LC_ALL=C GIT_CONFIG_NOSYSTEM=1 git --no-optional-locks --literal-pathspecs \
                   -c core.fsmonitor=false -c core.hooksPath=/dev/null";

/// How much of a file git could restore, from all of it to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CommittedState {
    /// The file as it is now.
    Committed,
    /// An older version, without the latest changes.
    Older,
    /// Nothing: the file is not in the repository.
    Nowhere,
}

/// The status of the workspace with relative paths, whatever the user's settings are.
const STATUS: &str = "-c status.relativePaths=true -c status.branch=false -c status.showStash=false \
                      -c color.status=false -c column.status=never status --short -- .";

/// Asks git how the workspace differs from its last commit.
pub(crate) async fn status(
    runner: &Runner,
    workspace: &Path,
    context: &ToolContext,
) -> Result<Finished, RunError> {
    run(runner, workspace, context, STATUS).await
}

/// How far existing files are under version control; the least protected file counts.
pub(crate) async fn kept(runner: &Runner, workspace: &Path, paths: &[&Path]) -> CommittedState {
    let Some(names) =
        paths.iter().map(|path| path.to_str().map(quoted)).collect::<Option<Vec<_>>>()
    else {
        return CommittedState::Nowhere;
    };
    let asked = format!("status --porcelain --ignored -- {}", names.join(" "));
    match run(runner, workspace, &quiet(), &asked).await {
        Ok(finished) if finished.end == End::Exited(0) => {
            let text = finished.stdout.text();
            let states = text.lines().map(|line| match line.get(..2) {
                Some("??" | "!!") => CommittedState::Nowhere,
                _ => CommittedState::Older,
            });
            states.max().unwrap_or(CommittedState::Committed)
        }
        _ => CommittedState::Nowhere,
    }
}

async fn run(
    runner: &Runner,
    workspace: &Path,
    context: &ToolContext,
    asked: &str,
) -> Result<Finished, RunError> {
    let command = format!("{GIT} {asked}");
    runner.run(Job { command: &command, workspace, timeout: TIMEOUT }, context).await
}

/// Runs a command line that may call git in its own way.
pub(crate) async fn run_plain(
    runner: &Runner,
    workspace: &Path,
    command: &str,
) -> Result<Finished, RunError> {
    runner.run(Job { command, workspace, timeout: TIMEOUT }, &quiet()).await
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A context that discards progress and is never cancelled.
pub(crate) fn quiet() -> ToolContext {
    let quiet = Arc::new(NoProgress);
    ToolContext { progress: quiet.clone(), cancel: quiet, questions: Arc::new(NobodyToAsk) }
}

struct NoProgress;

impl ToolProgress for NoProgress {
    fn report(&self, _: &str) {}
}

impl CancelSignal for NoProgress {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
