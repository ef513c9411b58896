//! A finished command, as the model and people read it.

use quintet_kernel::message::Part;
use quintet_kernel::port::{OutputFile, ToolOutput};
use quintet_kernel::tool::{Ending, Outcome};
use serde::Serialize;

use super::capture::{STORED_LIMIT, log};
use super::{End, Finished};
use crate::sandbox::Permissions;

/// The exit code of a command that took too long, as with `timeout`.
const TIMED_OUT: i32 = 124;

/// The shape in which the model reads a command's result.
#[derive(Debug, Serialize)]
pub(crate) struct CommandReport {
    cmd: String,
    exit_code: i32,
    stdout: String,
    stderr: String,
    duration: String,
    /// What the sandbox blocked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sandbox: Vec<String>,
    /// The same, as a call may ask for it.
    #[serde(skip_serializing_if = "Permissions::is_empty")]
    permissions: Permissions,
}

impl Finished {
    /// What the model reads.
    pub(crate) fn report(&self) -> CommandReport {
        CommandReport {
            cmd: self.command.clone(),
            exit_code: self.code(),
            stdout: self.stdout.text(),
            stderr: self.stderr.text(),
            duration: self.duration(),
            sandbox: self.blocked.hints.clone(),
            permissions: self.blocked.permissions.clone(),
        }
    }

    /// How the call ended that ran it.
    pub(crate) fn ending(&self) -> Ending {
        match self.end {
            End::Exited(0) => Ending::Succeeded,
            End::Exited(_) | End::TimedOut(_) => Ending::Failed,
            End::Cancelled(_) => Ending::Cancelled,
        }
    }

    /// One line for people, where it did not succeed.
    pub(crate) fn error(&self) -> Option<String> {
        match self.end {
            End::Exited(0) => None,
            End::Exited(code) => Some(format!("exit code {code}")),
            End::TimedOut(after) => {
                Some(format!("exit code {TIMED_OUT}: timed out after {}s", after.as_secs_f64()))
            }
            End::Cancelled(_) => Some("cancelled".to_owned()),
        }
    }

    /// The streams that the model does not read whole.
    pub(crate) fn files(&self) -> Vec<OutputFile> {
        let streams = [("stdout.log", &self.stdout), ("stderr.log", &self.stderr)];
        streams.into_iter().filter_map(|(name, stream)| stream.file(name)).collect()
    }

    fn code(&self) -> i32 {
        match self.end {
            End::Exited(code) | End::Cancelled(code) => code,
            End::TimedOut(_) => TIMED_OUT,
        }
    }

    fn duration(&self) -> String {
        format!("{:.3}s", self.took.as_secs_f64())
    }
}

/// What a call gives back whose text is JSON.
pub(crate) fn output(
    ending: Ending,
    json: &impl Serialize,
    error: Option<String>,
    files: Vec<OutputFile>,
) -> ToolOutput {
    let text = serde_json::to_string(json).expect("a report is plain text and numbers");
    let outcome = Outcome {
        ending,
        parts: vec![Part::Text(text)],
        error,
        artifacts: Vec::new(),
        changes: Vec::new(),
        more_changes: None,
        unrecorded: Vec::new(),
        front_end_data: serde_json::Value::Null,
    };
    ToolOutput::with_files(outcome, files)
}

/// The whole output of several commands as one file.
#[derive(Debug, Default)]
pub(crate) struct Log {
    content: Vec<u8>,
}

impl Log {
    /// Adds a command's output. If it is too much, the oldest is dropped: the last command is the one that failed.
    pub(crate) fn add(&mut self, finished: &Finished) {
        let (code, duration) = (finished.code(), finished.duration());
        self.content.extend_from_slice(format!("$ {}\n", finished.command).as_bytes());
        self.content.extend_from_slice(&finished.stdout.content());
        self.content.extend_from_slice(&finished.stderr.content());
        self.content.extend_from_slice(format!("[exit code {code}, {duration}]\n\n").as_bytes());
        self.content.drain(..self.content.len().saturating_sub(STORED_LIMIT));
    }

    /// The file.
    pub(crate) fn file(self, name: &str) -> OutputFile {
        log(name, self.content)
    }
}
