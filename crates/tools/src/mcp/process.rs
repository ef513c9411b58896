//! The process of a server that is spoken to on its standard input and output.
//!
//! It runs under the supervisor, which passes its input on: closing that, on purpose or by dying, ends
//! the server and everything that it started.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::run::Environment;
use crate::{show, supervisor};

/// How many of the last lines on standard error are kept for messages.
const ERROR_LINES: usize = 8;
/// How long a kept line may be.
const LINE_LIMIT: u64 = 2048;
/// How long the supervisor has to end the tree: longer than its own delays.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// How processes are started.
#[derive(Clone, Debug)]
pub(super) struct ServerLauncher {
    /// The executable that has the supervisor's subcommand.
    pub(super) supervisor: PathBuf,
    environment: Arc<Environment>,
}

/// A server's process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    errors: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl ServerLauncher {
    /// Takes the few variables that servers get from this process's environment now.
    pub(super) fn new(supervisor: PathBuf) -> Self {
        Self { supervisor, environment: Arc::new(Environment::of_this_process()) }
    }

    /// Starts a server in a folder.
    #[expect(clippy::disallowed_methods, reason = "this starts the supervisor itself")]
    pub(super) fn start(
        &self,
        command: &[String],
        env: &BTreeMap<String, String>,
        folder: &Path,
    ) -> Result<(Process, ChildStdout, ChildStdin), String> {
        if !folder.is_dir() {
            return Err(format!("{} is not a folder", show::path(folder)));
        }
        let mut supervised = Command::new(&self.supervisor);
        supervised
            .env_clear()
            .envs(self.environment.iter())
            .envs(env)
            .args([supervisor::SUBCOMMAND, "--forward", "--"])
            .args(command)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the daemon's terminal must not end the supervisor before its work.
            .process_group(0);
        let mut child =
            supervised.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err("cannot be started: it has no pipes".to_owned());
        };
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let reader = drain(stderr, Arc::clone(&errors));
        Ok((Process { child, errors, reader }, stdout, stdin))
    }
}

impl Process {
    /// The last lines that the server wrote on standard error, if any.
    pub(super) fn last_errors(&self) -> Option<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = errors.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Waits until the server's tree is gone, whose input was closed before; gives the exit code and its
    /// last lines on standard error.
    pub(super) async fn ended(mut self) -> (Option<i32>, Option<String>) {
        let status = tokio::time::timeout(END_TIMEOUT, self.child.wait()).await;
        let code = status.ok().and_then(Result::ok).and_then(|status| status.code());
        // What was written last is read, unless something else holds the pipe open.
        let _late = tokio::time::timeout(Duration::from_millis(200), &mut self.reader).await;
        (code, self.last_errors())
    }
}

/// Reads standard error to its end, so that the server never waits for somebody to do it.
#[expect(
    clippy::disallowed_methods,
    reason = "the task ends with the process, whose owner waits for it"
)]
fn drain(stderr: ChildStderr, errors: Arc<Mutex<VecDeque<String>>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut lines = BufReader::new(stderr);
        loop {
            let mut line = Vec::new();
            // A line that is too long is read in pieces.
            let read = (&mut lines).take(LINE_LIMIT).read_until(b'\n', &mut line).await;
            if !read.is_ok_and(|bytes| bytes > 0) {
                return;
            }
            let line = String::from_utf8_lossy(&line).trim_end().to_owned();
            tracing::debug!(target: "quintet_tools::mcp", "stderr: {line}");
            let mut errors = errors.lock().unwrap_or_else(PoisonError::into_inner);
            if errors.len() == ERROR_LINES {
                errors.pop_front();
            }
            errors.push_back(line);
        }
    })
}
