//! Runs shell commands under the supervisor: streamed, bounded, with a time limit, cancellable.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{ToolContext, ToolProgress};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::sandbox::{Blocked, Confiner, Permissions, Refused, Sandbox};
use crate::utf8::Decoder;

mod capture;
mod environment;
mod prepared;
mod report;
mod supervised;

pub(crate) use capture::Capture;
pub(crate) use environment::Environment;
use prepared::Launcher;
pub(crate) use prepared::confine;
pub(crate) use report::{Log, output};
use supervised::Supervised;
pub(crate) use supervised::remove_scratch;

/// The default time limit of a command.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long output is still read after the command is gone. Its end closes the pipes, unless a
/// process that could not be ended (another user's) holds them.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

const BUFFER_BYTES: usize = 16 * 1024;

/// The section of the configuration that says what commands may do.
const SETTINGS: &str = "sandbox";

/// Runs commands.
#[derive(Debug)]
pub(crate) struct Runner {
    confiner: Confiner,
    launcher: Arc<Launcher>,
}

/// A command to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job<'a> {
    pub(crate) command: &'a str,
    pub(crate) workspace: &'a Path,
    pub(crate) timeout: Duration,
}

/// A command that ran.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) command: String,
    pub(crate) end: End,
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) took: Duration,
    /// What the sandbox blocked.
    pub(crate) blocked: Blocked,
}

/// How a command ended. None of its processes are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The command exited, or was ended by a signal.
    Exited(i32),
    /// The command took too long.
    TimedOut(Duration),
    /// The turn was cancelled.
    Cancelled(i32),
}

/// A command that could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("the workspace is not a directory: {}; restore it, or start a session in another folder", .0.display())]
    Workspace(PathBuf),
    #[error("the command was not run: {0}")]
    Refused(#[from] Refused),
    #[error("the command could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("the outcome of the command is unknown: {0}")]
    Wait(#[source] io::Error),
}

impl Runner {
    /// A runner that starts commands with this executable's supervisor.
    pub(crate) fn new(supervisor: PathBuf, sandbox: Sandbox, cache: PathBuf) -> Self {
        // Commands are somewhere else, so a path from here on would be another.
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let confiner = Confiner::new(sandbox, &supervisor, Some(cache.clone()));
        Self { confiner, launcher: Arc::new(Launcher::new(supervisor, cache)) }
    }

    /// Runs a command; when it returns, or is dropped and a moment passed, the tree is gone.
    pub(crate) async fn run(
        &self,
        job: Job<'_>,
        context: &ToolContext,
    ) -> Result<Finished, RunError> {
        self.run_permitted(job, &Permissions::default(), context).await
    }

    /// The requested permissions that the sandbox does not grant already; an error if one is never granted.
    pub(crate) fn beyond(&self, asked: &Permissions) -> Result<Permissions, String> {
        self.confiner.beyond(asked)
    }

    /// Runs a command with these permissions in addition to what the sandbox allows.
    pub(crate) async fn run_permitted(
        &self,
        job: Job<'_>,
        permissions: &Permissions,
        context: &ToolContext,
    ) -> Result<Finished, RunError> {
        let Job { command, workspace, timeout } = job;
        if !workspace.is_dir() {
            return Err(RunError::Workspace(workspace.to_owned()));
        }
        let Some(confinement) = self.confiner.plan(workspace, permissions)? else {
            return follow(self.launcher.unconfined(&job)?, command, timeout, context).await;
        };
        let started = self.launcher.start(&confinement, &job).await?;
        let mut finished = follow(started, command, timeout, context).await?;
        self.launcher.clone().prepare_next(confinement);
        if !matches!(finished.end, End::Exited(0) | End::Cancelled(_)) {
            let output = finished.stdout.text() + "\n" + &finished.stderr.text();
            finished.blocked = self.confiner.blocked(workspace, permissions, SETTINGS, &output);
        }
        Ok(finished)
    }

    /// Runs the executable itself, whose subcommand has to shut itself in.
    pub(crate) async fn run_own(
        &self,
        args: Vec<OsString>,
        timeout: Duration,
        context: &ToolContext,
    ) -> Result<Finished, RunError> {
        follow(self.launcher.own(args)?, "", timeout, context).await
    }
}

/// Waits for a command to end, and takes down what it writes meanwhile.
async fn follow(
    mut supervised: Supervised,
    command: &str,
    timeout: Duration,
    context: &ToolContext,
) -> Result<Finished, RunError> {
    let began = Instant::now();
    let (out, err) = supervised.outputs();
    let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
    let gone = Notify::new();
    let read = async {
        let progress = &*context.progress;
        let pumps = async {
            tokio::join!(pump(out, &mut stdout, progress), pump(err, &mut stderr, progress))
        };
        tokio::select! { _ = pumps => (), () = given_up(&gone) => () }
    };
    let wait = async {
        let end = wait(&mut supervised, stop(context, timeout)).await;
        gone.notify_one();
        end
    };
    let (end, ()) = tokio::join!(wait, read);
    let (end, took) = (end.map_err(RunError::Wait)?, began.elapsed());
    let (command, blocked) = (command.to_owned(), Blocked::default());
    Ok(Finished { command, end, stdout, stderr, took, blocked })
}

/// Waits for the command, and ends it when it should stop.
async fn wait(supervised: &mut Supervised, stop: impl Future<Output = Stop>) -> io::Result<End> {
    let stop = tokio::select! {
        code = supervised.code() => return Ok(End::Exited(code?)),
        stop = stop => stop,
    };
    let code = supervised.end().await?;
    Ok(match stop {
        Stop::Cancelled => End::Cancelled(code),
        Stop::TimedOut(after) => End::TimedOut(after),
    })
}

enum Stop {
    Cancelled,
    TimedOut(Duration),
}

async fn stop(context: &ToolContext, timeout: Duration) -> Stop {
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Stop::Cancelled,
        () = sleep(timeout) => Stop::TimedOut(timeout),
    }
}

async fn given_up(gone: &Notify) {
    gone.notified().await;
    sleep(DRAIN_TIMEOUT).await;
}

/// Reads a stream to its end; reports what is stored as progress.
async fn pump(
    stream: Option<impl AsyncRead + Unpin>,
    capture: &mut Capture,
    progress: &dyn ToolProgress,
) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut decoder = Decoder::default();
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            say(progress, &decoder.finish());
            return Ok(());
        }
        let kept = capture.push(&buffer[..read]);
        say(progress, &decoder.push(kept));
    }
}

fn say(progress: &dyn ToolProgress, text: &str) {
    if !text.is_empty() {
        progress.report(text);
    }
}
