//! Reasons for which a session refuses a command.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, QuestionId, SessionId, TurnId};
use crate::message::MediaKind;
use crate::model::ModelRef;

/// Why a command was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// A turn is open.
    #[error("session already running: {0}")]
    Busy(SessionId),
    /// The session exists already.
    #[error("session already exists: {0}")]
    Exists(SessionId),
    /// The session does not exist.
    #[error("session not found: {0}")]
    NotBegun(SessionId),
    /// No approval request is open.
    #[error("no approvals pending for session {0}")]
    NothingPending(SessionId),
    /// No approval request for this call is open.
    #[error("no approval pending for tool call {0}")]
    NotPending(CallId),
    /// The question is not open.
    #[error("question {0} is not open")]
    QuestionClosed(QuestionId),
    /// The answer does not fit the question, which stays open.
    #[error("the answer does not fit the question: {0}")]
    InvalidAnswer(String),
    /// The call belongs to another turn.
    #[error("tool call {call} does not belong to turn {turn}")]
    WrongTurn { call: CallId, turn: TurnId },
    /// The call does not exist.
    #[error("tool call not found: {0}")]
    UnknownCall(CallId),
    /// The call has ended, or its turn has.
    #[error("tool call {0} is over")]
    CallOver(CallId),
    /// The call does not wait for a client.
    #[error("tool call {0} is not waiting for a client")]
    NotDelegated(CallId),
    /// Another client claimed the call.
    #[error("tool call {0} is run by another client")]
    Claimed(CallId),
    /// The tools are not valid.
    #[error("bad tools: {0}")]
    BadTools(String),
    /// Another message was sent with this key.
    #[error("another message was sent under the name of turn {0}")]
    KeyReused(TurnId),
    /// The turn does not exist.
    #[error("turn not found: {0}")]
    UnknownTurn(TurnId),
    /// The turn succeeded and cannot be retried.
    #[error("turn {0} has succeeded and cannot be retried")]
    Succeeded(TurnId),
    /// The message has no parts.
    #[error("message has no parts")]
    EmptyMessage,
    /// The message names an attachment that does not exist.
    #[error("attachment not found: {0}")]
    UnknownAttachment(String),
    /// The attachment's name is not valid.
    #[error("invalid attachment name")]
    BadName,
    /// The model does not support this kind of media.
    #[error("model {model} does not take {} parts", kind.name())]
    UnsupportedInput { model: ModelRef, kind: MediaKind },
    /// The model's provider is not configured.
    #[error("unknown model: {0}; `quintet models` lists those that can be used")]
    UnknownModel(ModelRef),
    /// The turn changed no file.
    #[error("turn {0} changed no files")]
    NothingToRevert(TurnId),
    /// The turn's changes are already reverted.
    #[error("the changes of turn {0} are undone already")]
    AlreadyReverted(TurnId),
    /// The turn's changes are not reverted.
    #[error("the changes of turn {0} are not undone")]
    NotReverted(TurnId),
    /// There is no history to summarize.
    #[error("there is nothing to compact")]
    NothingToCompact,
}
