//! Identifies what a person is asked to approve: a call, or the continuation of a turn after a
//! restart.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, GeneratedId as _, TurnId};

/// What a person is asked to approve. The id tells which it is: no call id looks like a turn
/// id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum ApprovalId {
    /// Whether a call may run.
    Call(CallId),
    /// Whether an interrupted turn continues.
    Turn(TurnId),
}

impl ApprovalId {
    /// Parses an id from outside; `None` if it is not valid.
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

/// True if a call's id could be mistaken for a turn's.
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
