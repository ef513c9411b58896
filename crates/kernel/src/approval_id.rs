//! What a person is asked: whether a call may run, or whether a turn goes on after a crash.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, GeneratedId as _, TurnId};

/// What a person is asked. Its id says which it is: no call is named like a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum ApprovalId {
    /// Whether a call may run.
    Call(CallId),
    /// Whether a turn that a crash cut off goes on.
    Turn(TurnId),
}

impl ApprovalId {
    /// Takes the id of a question from outside, if it could be one.
    pub fn parse(id: &str) -> Option<Self> {
        CallId::parse(id).map(|_| Self::from(id.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Call(call) => call.as_str(),
            Self::Turn(turn) => turn.as_str(),
        }
    }
}

/// Whether a call could be taken for a turn by its id.
pub(crate) fn looks_like_turn_id(call: &CallId) -> bool {
    call.as_str().starts_with(TurnId::PREFIX)
}

impl From<String> for ApprovalId {
    fn from(id: String) -> Self {
        if id.starts_with(TurnId::PREFIX) {
            Self::Turn(TurnId::named(id))
        } else {
            Self::Call(CallId::named(id))
        }
    }
}

impl From<ApprovalId> for String {
    fn from(question: ApprovalId) -> Self {
        question.as_str().to_owned()
    }
}

impl From<CallId> for ApprovalId {
    fn from(call: CallId) -> Self {
        Self::Call(call)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
