//! A running supervisor and its control socket.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::supervisor::{control, kill_tree};

/// How long the supervisor has to end the tree: longer than its own delays.
const END_TIMEOUT: Duration = Duration::from_secs(12);

/// How often the scratch directory of a killed supervisor is tried to be removed, and the pause between.
const REMOVAL_ATTEMPTS: u32 = 100;
const REMOVAL_PAUSE: Duration = Duration::from_millis(50);

/// A supervisor. Dropping it ends the command.
#[derive(Debug)]
pub(super) struct Supervised {
    child: Child,
    /// Taken when the command is to end.
    control: Option<UnixStream>,
    /// What the supervisor removes at its end, if it can.
    scratch: Option<PathBuf>,
}

impl Supervised {
    /// Starts a supervisor that removes this directory.
    pub(super) fn start(mut command: Command, scratch: Option<PathBuf>) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the daemon's terminal must not end the supervisor before its work.
            .process_group(0);
        let child = command.spawn()?;
        Ok(Self { child, control: Some(UnixStream::from_std(ours)?), scratch })
    }

    /// What the command writes.
    pub(super) fn outputs(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdout.take(), self.child.stderr.take())
    }

    /// True if the supervisor still waits for its command. What one leaves that was killed is removed.
    pub(super) fn is_waiting(&mut self) -> bool {
        let status = self.child.try_wait();
        if let Ok(Some(status)) = status
            && status.code().is_none()
            && let Some(scratch) = self.scratch.take()
        {
            spawn_blocking(move || remove_scratch(&scratch));
        }
        matches!(status, Ok(None))
    }

    /// Sends the command that a prepared sandbox waits for.
    ///
    /// # Errors
    /// If the command is too long.
    pub(super) async fn send(&mut self, command: &str) -> io::Result<()> {
        let frame = control::frame(command.as_bytes())?;
        if let Some(control) = &mut self.control {
            // A supervisor that has exited left an exit code and a reason on its output.
            let _gone = control.write_all(&frame).await;
        }
        Ok(())
    }

    /// The exit code of the command, once all of its processes have ended.
    pub(super) async fn code(&mut self) -> io::Result<i32> {
        let mut code = [0];
        if let Some(control) = &mut self.control
            && control.read_exact(&mut code).await.is_ok()
        {
            return Ok(i32::from(code[0]));
        }
        let status = self.child.wait().await?;
        self.code_of(status).await
    }

    /// Ends the command and everything that it started.
    pub(super) async fn end(&mut self) -> io::Result<i32> {
        drop(self.control.take());
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid {
            // Somebody may have stopped it.
            let _gone = kill_process(pid, Signal::CONT);
        }
        let status = match timeout(END_TIMEOUT, self.child.wait()).await {
            Ok(status) => status?,
            Err(_) => {
                tracing::warn!("a supervisor did not end and is killed with its command");
                if let Some(pid) = pid {
                    let _done = spawn_blocking(move || kill_tree(pid)).await;
                }
                self.child.wait().await?
            }
        };
        self.code_of(status).await
    }

    async fn code_of(&mut self, status: ExitStatus) -> io::Result<i32> {
        if let Some(code) = status.code() {
            return Ok(code);
        }
        let signal = status.signal().unwrap_or_default();
        tracing::warn!(signal, "the supervisor of a command was killed");
        if let Some(scratch) = self.scratch.take() {
            let _removed = spawn_blocking(move || remove_scratch(&scratch)).await;
        }
        Ok(128 + signal)
    }
}

/// Removes what a killed supervisor left. Its sandbox may still be dying, and has mounts there until then.
pub(crate) fn remove_scratch(scratch: &Path) {
    for _ in 0..REMOVAL_ATTEMPTS {
        match fs::remove_dir_all(scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => sleep(REMOVAL_PAUSE),
            _ => return,
        }
    }
    tracing::warn!(scratch = %scratch.display(), "the folder of a killed command cannot be removed");
}
