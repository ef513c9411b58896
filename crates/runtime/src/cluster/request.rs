//! Encoding of requests between nodes: JSON that only nodes of the same version read.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Error, Receipt, StorageError};
use quintet_kernel::{Refusal, SessionId, Time};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The version that both nodes must have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A request to the owner of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    /// Execute a command.
    Submit(Box<Command>),
    /// Delete the session.
    Remove,
}

impl Action {
    /// True if executing the action twice has the same effect as once: it names what it changes,
    /// and a repetition changes nothing or is refused.
    pub(super) fn is_repeatable(&self) -> bool {
        let Self::Submit(command) = self else { return true };
        match &**command {
            Command::AddMessage(say) => say.options.key.is_some(),
            Command::Create(_)
            | Command::SetLabel { .. }
            | Command::SwitchModel(_)
            | Command::SetSystemPrompt { .. }
            | Command::SetWorkspace { .. }
            | Command::SetTools(_)
            | Command::Approve(_)
            | Command::ClaimCalls { .. }
            | Command::ReturnResult { .. }
            | Command::Disconnect { .. }
            | Command::CancelTurn { .. }
            | Command::Close { .. }
            | Command::SpawnSubagent { .. }
            | Command::WithdrawQuestion { .. }
            | Command::Wake => true,
            Command::Attach(_)
            | Command::StartTurn { .. }
            | Command::Cancel { .. }
            | Command::ImportMessages { .. }
            | Command::Supersede { .. }
            | Command::Revert { .. }
            | Command::Reapply { .. }
            | Command::Compact
            | Command::CompactWith { .. }
            | Command::ModelOutput { .. }
            | Command::ModelRetrying { .. }
            | Command::ModelCompleted { .. }
            | Command::ModelFailed { .. }
            | Command::ContextGathered { .. }
            | Command::Assessed { .. }
            | Command::Reviewed { .. }
            | Command::Subagent { .. }
            | Command::AskUser { .. }
            | Command::CallFinished { .. }
            | Command::RevertFinished { .. }
            | Command::SummaryWritten { .. }
            | Command::SummaryFailed { .. }
            | Command::MemorySaved { .. }
            | Command::Recover { .. } => false,
        }
    }

    /// Gives a message without a key this one, so that it is processed once.
    pub(super) fn with_key(mut self, key: &str) -> Self {
        if let Self::Submit(command) = &mut self
            && let Command::AddMessage(say) = &mut **command
        {
            say.options.key.get_or_insert_with(|| key.to_owned());
        }
        self
    }

    /// The key of the message that the action adds.
    pub(super) fn message_key(&self) -> Option<&str> {
        match self {
            Self::Submit(command) => match &**command {
                Command::AddMessage(say) => say.options.key.as_deref(),
                _ => None,
            },
            Self::Remove => None,
        }
    }
}

/// The result of a request.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    Receipt(Receipt),
    Removed,
}

/// A request for the owner of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// A request with this key is executed once.
    pub(super) key: String,
    pub(super) from: Sender,
    pub(super) session: SessionId,
    pub(super) action: Action,
}

/// The process that sends a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sender {
    pub(super) name: String,
    pub(super) instance: String,
}

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    version: String,
    #[serde(borrow)]
    request: &'a RawValue,
}

/// The owner's reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Receipt {
        session: SessionId,
        records: Vec<(Seq, Time, Event)>,
    },
    Removed,
    /// Nothing was done: another node owns the session.
    NotOwner,
    /// The node shuts down: the request was not read, or its result is incomplete.
    Closing,
    /// Nothing was done: the node has another version.
    Version(String),
    Failed(Failure),
}

/// An error of the core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Failure {
    NotFound(SessionId),
    Refused(Refusal),
    Ahead(Seq, Seq),
    ReadOnly,
    Missing(String),
    Damaged(String),
    Unavailable(String),
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        let request = serde_json::value::to_raw_value(self).expect(ALWAYS);
        serde_json::to_vec(&Envelope { version: VERSION.into(), request: &request }).expect(ALWAYS)
    }
}

/// Why encoding cannot fail.
const ALWAYS: &str = "commands have string keys and no failing serializers";

/// Decodes a request; fails with the reply to a request that cannot be decoded.
pub(super) fn decode(body: &[u8]) -> Result<Request, Vec<u8>> {
    let unreadable = |error: serde_json::Error| {
        let why = format!("the request of another node cannot be read: {error}");
        Reply::Failed(Failure::Unavailable(why)).encode()
    };
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(unreadable)?;
    if envelope.version != VERSION {
        return Err(Reply::Version(VERSION.into()).encode());
    }
    serde_json::from_str(envelope.request.get()).map_err(unreadable)
}

/// True if a reply has the result of a request; otherwise the request may be sent again.
pub(super) fn is_final(reply: &[u8]) -> bool {
    !matches!(Reply::decode(reply), Ok(Reply::NotOwner | Reply::Closing))
}

impl Reply {
    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect(ALWAYS)
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

impl From<Result<Done, Error>> for Reply {
    fn from(done: Result<Done, Error>) -> Self {
        let failure = match done {
            Ok(Done::Removed) => return Self::Removed,
            Ok(Done::Receipt(Receipt { session, records })) => {
                let record = |record: Arc<Record>| (record.seq, record.at, record.event.clone());
                return Self::Receipt {
                    session,
                    records: records.into_iter().map(record).collect(),
                };
            }
            Err(Error::Closing) => return Self::Closing,
            Err(Error::NotFound(session)) => Failure::NotFound(session),
            Err(Error::Refused(refusal)) => Failure::Refused(refusal),
            Err(Error::Ahead(position, head)) => Failure::Ahead(position, head),
            Err(Error::ReadOnly) => Failure::ReadOnly,
            Err(Error::Storage(error)) => match error {
                StorageError::Held(_) | StorageError::Fenced => return Self::NotOwner,
                StorageError::Missing(what) => Failure::Missing(what),
                StorageError::Damaged(what) => Failure::Damaged(what),
                StorageError::Unavailable(why) => Failure::Unavailable(why),
                error @ StorageError::Conflict(_) => Failure::Unavailable(error.to_string()),
            },
        };
        Self::Failed(failure)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotFound(session) => Self::NotFound(session),
            Failure::Refused(refusal) => Self::Refused(refusal),
            Failure::Ahead(position, head) => Self::Ahead(position, head),
            Failure::ReadOnly => Self::ReadOnly,
            Failure::Missing(what) => StorageError::Missing(what).into(),
            Failure::Damaged(what) => StorageError::Damaged(what).into(),
            Failure::Unavailable(why) => StorageError::Unavailable(why).into(),
        }
    }
}

#[cfg(test)]
mod tests;
