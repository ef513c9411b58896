//! Runs shell commands under the supervisor: streamed, bounded, with a time limit, cancellable.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use quintet_kernel::port::{ToolContext, ToolProgress};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::sandbox::{self, Blocked, Permissions, Refused, Room, Rooms, Sandbox};
use crate::supervisor;
use crate::utf8::Decoder;

mod capture;
mod environment;
mod report;

pub(crate) use capture::Capture;
pub(crate) use environment::Environment;
pub(crate) use report::{Log, output};

/// How long a command may take if nobody says.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How long output is still read after the supervisor is gone. Its end closes the pipes, unless a
/// process that it could not end (another user's) holds them.
const DRAIN: Duration = Duration::from_secs(1);

const BUFFER: usize = 16 * 1024;

/// What commands are run with.
#[derive(Debug)]
pub(crate) struct Runner {
    /// The executable that has the supervisor's subcommand.
    supervisor: PathBuf,
    environment: Environment,
    /// Where confined commands keep what they download and build.
    cache: PathBuf,
    rooms: Rooms,
    shell: [&'static str; 2],
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
    /// What the sandbox kept it from.
    pub(crate) blocked: Blocked,
}

/// How a command ended; nothing of it runs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself, or by somebody else's signal.
    Exited(i32),
    /// The command took too long.
    TimedOut(Duration),
    /// The turn was cancelled.
    Cancelled(i32),
}

/// A command that could not be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the workspace is not a directory: {}", .0.display())]
    Workspace(PathBuf),
    #[error("the command was not run: {0}")]
    Refused(#[from] Refused),
    #[error("the command could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("the command was lost sight of: {0}")]
    Wait(#[source] io::Error),
}

impl Runner {
    /// A runner that starts commands with this executable's supervisor.
    pub(crate) fn new(supervisor: PathBuf, sandbox: Sandbox, cache: PathBuf) -> Self {
        let bash = Path::new("/bin/bash").exists();
        // Not a login shell: a profile is slow, may fail, and is the user's, not the agent's.
        let shell = if bash { ["/bin/bash", "-c"] } else { ["/bin/sh", "-c"] };
        let environment = Environment::of_this_process();
        // Commands are somewhere else, so a path from here on would be another.
        let cache = std::path::absolute(&cache).unwrap_or(cache);
        let rooms = Rooms::new(sandbox, &supervisor, cache.clone());
        Self { supervisor, environment, cache, rooms, shell }
    }

    /// Runs a command; when it returns, or is dropped and a moment passed, the tree is gone.
    pub(crate) async fn run(&self, job: Job<'_>, context: &ToolContext) -> Result<Finished, Error> {
        self.run_permitted(job, &Permissions::default(), context).await
    }

    /// What of these permissions the sandbox does not allow anyway; an error if some can never be had.
    pub(crate) fn beyond(&self, asked: &Permissions) -> Result<Permissions, String> {
        self.rooms.beyond(asked)
    }

    /// Runs a command that has these permissions besides what the sandbox allows.
    pub(crate) async fn run_permitted(
        &self,
        job: Job<'_>,
        permissions: &Permissions,
        context: &ToolContext,
    ) -> Result<Finished, Error> {
        let child = self.spawn(&job, permissions)?;
        let mut finished = follow(child, job.command, job.timeout, context).await?;
        if !matches!(finished.end, End::Exited(0) | End::Cancelled(_)) {
            let output = finished.stdout.text() + "\n" + &finished.stderr.text();
            finished.blocked = self.rooms.blocked(job.workspace, permissions, &output);
        }
        Ok(finished)
    }

    /// Runs the executable itself, whose subcommand has to shut itself in.
    pub(crate) async fn run_own(
        &self,
        args: Vec<OsString>,
        timeout: Duration,
        context: &ToolContext,
    ) -> Result<Finished, Error> {
        let mut command = self.supervised(None);
        command.arg(&self.supervisor).args(args).current_dir("/");
        follow(start(command)?, "", timeout, context).await
    }

    fn spawn(&self, job: &Job<'_>, permissions: &Permissions) -> Result<Child, Error> {
        if !job.workspace.is_dir() {
            return Err(Error::Workspace(job.workspace.to_owned()));
        }
        let room = self.rooms.give(job.workspace, permissions)?;
        let mut command = self.supervised(room.as_ref());
        command.args(self.shell).arg(job.command).current_dir(job.workspace);
        let child = start(command)?;
        // Even if the daemon dies the supervisor will be there to clear the room.
        room.map(Room::hand_over);
        Ok(child)
    }

    /// The supervisor, to be followed by a command, which is confined if it has a room.
    #[expect(clippy::disallowed_methods, reason = "this starts the supervisor itself")]
    fn supervised(&self, room: Option<&Room>) -> Command {
        let mut command = Command::new(&self.supervisor);
        command.env_clear().envs(self.environment.iter()).arg(supervisor::SUBCOMMAND);
        let Some(room) = room else {
            command.arg("--");
            return command;
        };
        let scratch = room.scratch();
        command.arg("--confined").arg("--scratch").arg(scratch);
        command.env("TMPDIR", room.temporary());
        command.envs(environment::confined(&self.cache, room.has_network));
        if let Some(network) = room.network {
            command.args(["--namespaces", network.word()]);
        }
        command.arg("--");
        command.arg(&self.supervisor).args([sandbox::SUBCOMMAND, &room.policy, "--"]);
        command
    }
}

/// Waits for a command to end, and takes down what it says meanwhile.
async fn follow(
    mut child: Child,
    command: &str,
    timeout: Duration,
    context: &ToolContext,
) -> Result<Finished, Error> {
    let began = Instant::now();
    let leash = child.stdin.take();
    let (out, err) = (child.stdout.take(), child.stderr.take());
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
        let end = watch(&mut child, leash, stop(context, timeout)).await;
        gone.notify_one();
        end
    };
    let (end, ()) = tokio::join!(wait, read);
    let (end, took) = (end.map_err(Error::Wait)?, began.elapsed());
    let (command, blocked) = (command.to_owned(), Blocked::default());
    Ok(Finished { command, end, stdout, stderr, took, blocked })
}

/// Starts the supervisor with its pipes.
fn start(mut command: Command) -> Result<Child, Error> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C at the daemon's terminal must not end the supervisor before its work.
        .process_group(0);
    command.spawn().map_err(Error::Start)
}

/// Waits for the supervisor; lets go of its leash when the command should stop.
async fn watch(
    child: &mut Child,
    leash: Option<ChildStdin>,
    stop: impl Future<Output = Stop>,
) -> io::Result<End> {
    let stop = tokio::select! {
        status = child.wait() => return Ok(End::Exited(code(status?))),
        stop = stop => stop,
    };
    drop(leash);
    let code = code(child.wait().await?);
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
    sleep(DRAIN).await;
}

/// Reads a stream to its end; passes on what is kept.
async fn pump(
    stream: Option<impl AsyncRead + Unpin>,
    capture: &mut Capture,
    progress: &dyn ToolProgress,
) -> io::Result<()> {
    let Some(mut stream) = stream else { return Ok(()) };
    let mut buffer = vec![0; BUFFER];
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

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| {
        let signal = status.signal().unwrap_or_default();
        tracing::warn!(signal, "the supervisor was killed; its command may still run");
        128 + signal
    })
}
