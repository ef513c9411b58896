//! The process of a server that is spoken to on its standard input and output.
//!
//! It runs under the supervisor, which passes its input on: closing that, on purpose or by dying, ends
//! the server and everything that it started.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::run;
use crate::sandbox::{Confiner, Permissions};

/// How many of the last lines on standard error are kept for messages.
const ERROR_LINES: usize = 8;
/// How long a kept line may be.
const LINE_LIMIT: u64 = 2048;
/// How long the supervisor has to end the tree: longer than its own delays.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// A server's process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    errors: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
    confined: Option<Confined>,
}

/// The sandbox of a process.
#[derive(Debug)]
pub(super) struct Confined {
    pub(super) confiner: Arc<Confiner>,
    /// The section of the configuration that says what the server may do.
    pub(super) keys: String,
    /// Where the server works.
    pub(super) folder: PathBuf,
    pub(super) permissions: Permissions,
    /// What the supervisor removes at its end, if it can.
    pub(super) scratch: PathBuf,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    /// The last lines on standard error, and what the sandbox may have to do with it; begins with a semicolon
    /// unless it is empty.
    pub(super) details: String,
}

impl Process {
    /// Starts a supervisor with its command.
    pub(super) fn start(
        mut command: Command,
        confined: Option<Confined>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the daemon's terminal must not end the supervisor before its work.
            .process_group(0);
        let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
        let pipes = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err("cannot be started: it has no pipes".to_owned());
        };
        let errors = Arc::new(Mutex::new(VecDeque::new()));
        let reader = drain(stderr, Arc::clone(&errors));
        Ok((Self { child, errors, reader, confined }, stdout, stdin))
    }

    /// Waits until the server's tree is gone, whose input was closed before.
    pub(super) async fn ended(mut self) -> Ended {
        let status = tokio::time::timeout(END_TIMEOUT, self.child.wait()).await;
        let status = status.ok().and_then(Result::ok);
        // What was written last is read, unless something else holds the pipe open.
        let _late = tokio::time::timeout(Duration::from_millis(200), &mut self.reader).await;
        let code = status.and_then(|status| status.code());
        if let Some(Confined { scratch, .. }) = &self.confined
            && status.is_some()
            && code.is_none()
        {
            // Somebody killed the supervisor.
            let scratch = scratch.clone();
            spawn_blocking(move || run::remove_scratch(&scratch));
        }
        let words = self.last_errors();
        let mut details = words.as_ref().map_or(String::new(), |it| format!("; it wrote: {it}"));
        if let Some(confined) = &self.confined {
            details = format!("{details}; {}", confined.hint(words.as_deref().unwrap_or_default()));
        }
        Ended { code, details }
    }

    /// The last lines that the server wrote on standard error, if any.
    fn last_errors(&self) -> Option<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = errors.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

impl Confined {
    /// The settings that allow more.
    fn hint(&self, words: &str) -> String {
        let Self { keys, folder, permissions, .. } = self;
        let hints = self.confiner.blocked(folder, permissions, keys, words).hints;
        if hints.is_empty() {
            return format!(
                "it ran in a sandbox: `{keys}.read`, `.write` and `.network` allow more, \
                 `{keys}.sandbox = false` allows everything"
            );
        }
        hints.join("; ")
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
