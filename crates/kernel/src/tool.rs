//! What a tool is to the core: a name, a schema, what it touches and who runs it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::change::{FileChange, UnlistedChanges, UnrecordedChange};
use crate::message::{CallArtifact, Part};

/// The argument in which a call of one of the daemon's tools asks for more than the sandbox allows.
pub const PERMISSIONS_ARGUMENT: &str = "permissions";

/// What a tool touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks, changes nothing; safe to repeat and to run beside others.
    Read,
    /// Changes files of the workspace.
    Write,
    /// Runs commands.
    Exec,
    /// Talks to the network.
    Network,
    /// Adds to what is remembered beyond the session.
    Memory,
    /// Has another agent work, whose own calls are judged one by one. It is found again if it is
    /// asked for twice, and several may work side by side.
    Delegate,
}

impl ToolKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Write, Self::Exec, Self::Network, Self::Memory, Self::Delegate];

    /// The word for it in configuration and protocols.
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

    /// Whether running it twice is the same as running it once.
    pub fn repeatable(self) -> bool {
        match self {
            Self::Read | Self::Delegate => true,
            Self::Write | Self::Exec | Self::Network | Self::Memory => false,
        }
    }

    /// Whether the workspace may be another one afterwards.
    pub fn changes_workspace(self) -> bool {
        match self {
            Self::Write | Self::Exec => true,
            Self::Read | Self::Network | Self::Memory | Self::Delegate => false,
        }
    }

    /// Whether the same look may show something else afterwards.
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
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// What it touches.
    pub kind: ToolKind,
    /// The place where the tool runs.
    pub placement: Placement,
}

/// How bad it can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing to lose.
    Low,
    /// Can be put right.
    Medium,
    /// Can lose work.
    High,
    /// Should not be done.
    Critical,
}

impl Risk {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What a person is shown before a call may run; the approval is bound to exactly this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// How bad it can get.
    pub risk: Risk,
    /// Why that.
    pub reasons: Vec<String>,
    /// Whether it can be undone.
    pub reversible: bool,
    /// A diff, or the command line and its directory.
    pub preview: String,
    /// What rules and remembered answers go by.
    #[serde(default, skip_serializing_if = "CallSubject::is_empty")]
    pub subject: CallSubject,
    /// What the call comes to without being run: its arguments are wrong, or there is nothing to do.
    /// Then nobody is asked, so this is never in a journal.
    #[serde(skip)]
    pub settled: Option<Outcome>,
}

/// What a call is about, as rules see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSubject {
    /// Files and folders it names, from the workspace on, with `/` between folders and without `.`
    /// or `..`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// The simple commands it runs, each as its words with a blank between them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Whether it may do more than `paths` and `commands` say, as a command line with expansions
    /// or redirections does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// What a similar call has in common with this one, in words for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similar: Option<String>,
    /// What it asks for beyond what the sandbox allows, in words for people. A person is always asked
    /// for that.
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
    /// Policy or a person said no.
    Denied,
    /// The call repeats an earlier one and was not run.
    Skipped,
    /// The turn was cancelled.
    Cancelled,
    /// The daemon died while it ran; nobody knows how far it got.
    Interrupted,
    /// No client said what came of it in time.
    TimedOut,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What the model is told.
    pub parts: Vec<Part>,
    /// One line for people, where it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Files it left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<CallArtifact>,
    /// What became of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// The changes beyond those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_changes: Option<UnlistedChanges>,
    /// What it may have done to files that is not among these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedChange>,
    /// What the front end that ran it keeps with it; models are not told.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub aside: Value,
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

    /// An end other than by the tool's own result.
    pub fn ended(ending: Ending, why: impl Into<String>) -> Self {
        let why = why.into();
        Self::new(ending, why.clone(), Some(why))
    }

    /// A result whose text is more than its one-line error.
    pub fn failed_with(text: impl Into<String>, error: impl Into<String>) -> Self {
        Self::new(Ending::Failed, text.into(), Some(error.into()))
    }

    /// Whether it did what it should.
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
            aside: Value::Null,
        }
    }
}
