//! The state of a run: its details, which never change, and its progress.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::Seq;
use crate::id::{ControlId, RunId};
use crate::time::Time;

/// The status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// In the queue of its workspace.
    AwaitingWorker,
    /// Assigned to a worker that has not started it.
    Queued,
    /// In progress.
    Running,
    /// Paused until it is resumed.
    Paused,
    /// Stopped by a person.
    Stopped,
    /// Completed.
    Completed,
    /// The worker reported an error, or too many workers were lost.
    Failed,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 7] = [
        Self::AwaitingWorker,
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Stopped,
        Self::Completed,
        Self::Failed,
    ];

    /// The name in storage and in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwaitingWorker => "awaiting_worker",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// The status with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// True if the run may still change its status.
    pub fn is_active(self) -> bool {
        match self {
            Self::AwaitingWorker | Self::Queued | Self::Running | Self::Paused => true,
            Self::Stopped | Self::Completed | Self::Failed => false,
        }
    }
}

/// Who may act in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlMode {
    /// The agent alone.
    #[default]
    AgentOnly,
    /// The agent; a person approves its calls before they run.
    SharedControl,
    /// A person alone: no tool of the agent runs.
    HumanOverride,
}

impl ControlMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::AgentOnly, Self::SharedControl, Self::HumanOverride];

    /// The name in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::AgentOnly => "agent_only",
            Self::SharedControl => "shared_control",
            Self::HumanOverride => "human_override",
        }
    }

    /// The mode with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// A command for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlAction {
    /// Pause the run.
    Pause,
    /// Resume the run.
    Resume,
    /// Stop the run.
    Stop,
    /// Change who may act.
    SetMode(ControlMode),
}

impl ControlAction {
    /// The name in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::SetMode(_) => "set-control-mode",
        }
    }

    /// The mode to set, if that is the action.
    pub fn mode(self) -> Option<ControlMode> {
        match self {
            Self::SetMode(mode) => Some(mode),
            Self::Pause | Self::Resume | Self::Stop => None,
        }
    }
}

/// A control command. It is sent to the worker with every heartbeat until the worker reports its
/// effect; the id keeps the worker from applying it twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// The id.
    pub id: ControlId,
    /// What to do.
    pub action: ControlAction,
    /// The person who sent the command, as the client states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// When the command was sent.
    pub at: Time,
}

/// An input file of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunFile {
    /// The uploaded file.
    pub artifact: String,
    /// The original file name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The media type, as the client states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// The request that created a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunDetails {
    /// The queue that the run is in.
    pub workspace: String,
    /// The agent that is to work, as the client names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The task.
    pub query: String,
    /// The person who created the run, as the client states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
    /// Input files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RunFile>,
    /// The client's own metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The conversation of the run, unless the worker names another one.
    pub conversation: String,
}

/// A worker, as its heartbeats describe it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// The id, unique in the fleet.
    pub id: String,
    /// The machine.
    pub vm: String,
    /// The owner of the worker's conversations; `None` if the heartbeat does not name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The worker's connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent on the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The status that the worker reports.
    pub status: String,
    /// The worker's own metadata.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl Worker {
    /// True if the worker takes runs.
    pub fn is_ready(&self) -> bool {
        matches!(self.status.as_str(), "ready" | "running")
    }
}

/// Which worker has a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerBinding {
    /// The worker.
    pub worker: Worker,
    /// The fencing number: every assignment of a run has a higher one.
    pub assignment: u64,
}

/// The progress of a run. Every field is computed from the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunProgress {
    /// The status of the run.
    pub status: RunStatus,
    /// Who may act.
    pub mode: ControlMode,
    /// The conversation.
    pub conversation: String,
    /// The turn that executes the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The worker that has the run; a finished run keeps its last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<WorkerBinding>,
    /// How often the run was assigned.
    #[serde(default)]
    pub assignments: u64,
    /// How many workers were lost.
    #[serde(default)]
    pub losses: u32,
    /// Turns of lost workers, whose reports are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_turns: Vec<String>,
    /// Commands whose effect was not reported yet, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Control>,
    /// The key of the last report that had one, so that a repeated request is stored once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<String>,
    /// The last heartbeat that is an event; stores keep the other heartbeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Time>,
    /// When the run was created.
    pub created: Time,
    /// When the last event happened.
    pub updated: Time,
    /// The last event.
    pub head: Seq,
    /// The event that ended the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<Seq>,
}

impl RunProgress {
    /// True if the run waits in the queue of its workspace.
    pub fn is_waiting(&self) -> bool {
        self.status == RunStatus::AwaitingWorker && self.binding.is_none()
    }

    /// True if a worker has the run and loses it when its heartbeats stop.
    pub fn is_leased(&self) -> bool {
        self.status.is_active() && self.binding.is_some()
    }

    /// The worker that has the run, or had it when it ended.
    pub fn worker(&self) -> Option<&str> {
        self.binding.as_ref().map(|binding| binding.worker.id.as_str())
    }
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunState {
    /// The id.
    pub id: RunId,
    /// The request that created the run.
    pub brief: Arc<RunDetails>,
    /// The progress of the run.
    pub progress: RunProgress,
}
