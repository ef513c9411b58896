//! A session's "no", with its reason.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, SessionId, TurnId};
use crate::message::MediaKind;
use crate::model::ModelRef;

/// Why a command was not carried out. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// A turn is open.
    #[error("session already running: {0}")]
    Busy(SessionId),
    /// The session has begun already.
    #[error("session already exists: {0}")]
    Exists(SessionId),
    /// The session has not begun.
    #[error("session not found: {0}")]
    NotBegun(SessionId),
    /// Nothing waits for a word.
    #[error("no approvals pending for session {0}")]
    NothingPending(SessionId),
    /// Something does, but not this.
    #[error("no approval pending for tool call {0}")]
    NotPending(CallId),
    /// The call belongs to another turn.
    #[error("tool call {call} does not belong to turn {turn}")]
    WrongTurn { call: CallId, turn: TurnId },
    /// No such call.
    #[error("tool call not found: {0}")]
    UnknownCall(CallId),
    /// The call has a result already, or its turn is over.
    #[error("tool call {0} is over")]
    CallOver(CallId),
    /// The call is not a client's to run, or not yet.
    #[error("tool call {0} is not waiting for a client")]
    NotDelegated(CallId),
    /// Another client has the call.
    #[error("tool call {0} is run by another client")]
    Claimed(CallId),
    /// A tool cannot be offered like this.
    #[error("bad tools: {0}")]
    BadTools(String),
    /// Another message has that name.
    #[error("another message was sent under the name of turn {0}")]
    KeyReused(TurnId),
    /// No such turn.
    #[error("turn not found: {0}")]
    UnknownTurn(TurnId),
    /// The turn ended well; there is nothing to try again.
    #[error("turn {0} has succeeded and cannot be retried")]
    Succeeded(TurnId),
    /// A message needs something to say.
    #[error("message has no parts")]
    EmptyMessage,
    /// The message names a file that is not there.
    #[error("attachment not found: {0}")]
    UnknownAttachment(String),
    /// The name cannot be a file's.
    #[error("invalid attachment name")]
    BadName,
    /// The model does not take such parts.
    #[error("model {model} does not take {} parts", kind.name())]
    UnsupportedInput { model: ModelRef, kind: MediaKind },
    /// The model's provider is not configured.
    #[error("unknown model: {0}; `quintet models` lists those that can be used")]
    UnknownModel(ModelRef),
    /// The turn changed no file.
    #[error("turn {0} changed no files")]
    NothingToRevert(TurnId),
    /// The turn's changes were undone before.
    #[error("the changes of turn {0} are undone already")]
    AlreadyReverted(TurnId),
    /// The turn's changes were not undone, so there is nothing to make again.
    #[error("the changes of turn {0} are not undone")]
    NotReverted(TurnId),
    /// There is no history to summarize.
    #[error("there is nothing to compact")]
    NothingToCompact,
}
