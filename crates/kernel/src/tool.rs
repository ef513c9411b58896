//! Tools as the core sees them: name, schema, kind and placement.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{FileChange, UnlistedChanges, UnrecordedChange};
use crate::message::{CallArtifact, Part};

/// The argument with which a call of a daemon tool requests more than the sandbox allows.
pub const PERMISSIONS_ARGUMENT: &str = "permissions";

/// What a tool accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Reads only; safe to repeat and to run concurrently.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Runs commands.
    Exec,
    /// Accesses the network.
    Network,
    /// Writes to memory.
    Memory,
    /// Runs a subagent, whose calls are decided one by one. Safe to repeat and to run
    /// concurrently.
    Delegate,
}

impl ToolKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Exec, Self::Network, Self::Memory, Self::Delegate];

    /// The name used in configuration and protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Network => "network",
            Self::Memory => "memory",
            Self::Delegate => "delegate",
        }
    }

    /// True if running a call twice has the same effect as once.
    pub fn repeatable(self) -> bool {
        match self {
            Self::Read | Self::Delegate => true,
            Self::Write | Self::Exec | Self::Network | Self::Memory => false,
        }
    }

    /// True if a call may change the workspace.
    pub fn changes_workspace(self) -> bool {
        match self {
            Self::Write | Self::Exec => true,
            Self::Read | Self::Network | Self::Memory | Self::Delegate => false,
        }
    }

    /// True if a repeated read may return something else afterwards.
    pub fn changes_visible_state(self) -> bool {
        self.changes_workspace() || matches!(self, Self::Memory | Self::Delegate)
    }
}

/// The place where a tool runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// This daemon, in the session's workspace.
    Daemon,
    /// The client: the turn waits until a client posts the result.
    Client,
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, the same in every protocol.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// What the tool accesses.
    pub kind: ToolKind,
    /// The place where the tool runs.
    pub placement: Placement,
    /// True if the provider must enforce the schema of the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// The possible damage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// No damage.
    Low,
    /// Damage that can be repaired.
    Medium,
    /// Possible loss of work.
    High,
    /// Should not run at all.
    Critical,
}

impl Risk {
    /// The name used in configuration and protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What a person is shown before a call may run; an approval applies to exactly this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// The possible damage.
    pub risk: Risk,
    /// The reasons for the risk.
    pub reasons: Vec<String>,
    /// True if the call can be undone.
    pub reversible: bool,
    /// A diff, or the command line and its directory.
    pub preview: String,
    /// What rules and remembered decisions match.
    #[serde(default, skip_serializing_if = "CallSubject::is_empty")]
    pub subject: CallSubject,
    /// The outcome of a call that need not run: its arguments are invalid, or there is
    /// nothing to do. No approval is requested then, so this is never stored.
    #[serde(skip)]
    pub settled: Option<Outcome>,
}

/// What a call accesses, for matching rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSubject {
    /// Files and folders, relative to the workspace, with `/` between folders and without
    /// `.` or `..`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The simple commands, each as its words separated by blanks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// True if the call may do more than `paths` and `commands` show, such as a command
    /// line with expansions or redirections.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// What similar calls have in common with this one, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similar: Option<String>,
    /// What the call requests beyond the sandbox, for people. Always needs approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
}

impl CallSubject {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The tool ran and succeeded.
    Succeeded,
    /// There was nothing to do.
    Idle,
    /// The tool ran, or could not run, and gave a reason.
    Failed,
    /// Policy or a person denied the call.
    Denied,
    /// The call repeats an earlier one and was not run.
    Skipped,
    /// The turn was cancelled.
    Cancelled,
    /// The daemon stopped while the call ran; its effects are unknown.
    Interrupted,
    /// No client returned a result in time.
    TimedOut,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How the call ended.
    pub ending: Ending,
    /// The content that the model reads.
    pub parts: Vec<Part>,
    /// One line for people, if the call did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Files that the call returned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<CallArtifact>,
    /// File changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Changes beyond the listed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_changes: Option<UnlistedChanges>,
    /// Changes that may have happened and were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedChange>,
    /// Data of the front end that ran the call; not sent to models.
    #[serde(default, rename = "aside", skip_serializing_if = "Value::is_null")]
    pub front_end_data: Value,
}

impl Outcome {
    /// A success; the model reads `text`.
    pub fn success(text: impl Into<String>) -> Self {
        Self::new(Ending::Succeeded, text.into(), None)
    }

    /// There was nothing to do, and the model reads why.
    pub fn idle(text: impl Into<String>) -> Self {
        Self::new(Ending::Idle, text.into(), None)
    }

    /// A failure; the model reads the reason.
    pub fn failure(error: impl Into<String>) -> Self {
        Self::ended(Ending::Failed, error)
    }

    /// An end that is not the tool's own result.
    pub fn ended(ending: Ending, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::new(ending, why.clone(), Some(why))
    }

    /// A result whose text is more than its one-line error.
    pub fn failed_with(text: impl Into<String>, error: impl Into<String>) -> Self {
        Self::new(Ending::Failed, text.into(), Some(error.into()))
    }

    /// True if the call succeeded.
    pub fn ok(&self) -> bool {
        matches!(self.ending, Ending::Succeeded | Ending::Idle)
    }

    fn new(ending: Ending, text: String, error: Option<String>) -> Self {
        Self {
            ending,
            parts: vec![Part::Text(text)],
            error,
            artifacts: Vec::new(),
            changes: Vec::new(),
            more_changes: None,
            unrecorded: Vec::new(),
            front_end_data: Value::Null,
        }
    }
}
