//! Identifies what a person is asked: whether a call may run, whether a turn continues after a
//! restart, or the question of a running call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{CallId, GeneratedId as _, QuestionId, TurnId};

/// What a person is asked. The prefix of the id tells which kind it is: no call id looks like the
/// id of a turn or a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum ApprovalId {
    /// Whether a call may run.
    Call(CallId),
    /// Whether an interrupted turn continues.
    Turn(TurnId),
    /// A question of a running call.
    Question(QuestionId),
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
            Self::Question(question) => question.as_str(),
        }
    }
}

/// True if a call's id could be mistaken for that of a turn or a question.
pub(crate) fn is_ambiguous(call: &CallId) -> bool {
    [TurnId::PREFIX, QuestionId::PREFIX].iter().any(|prefix| call.as_str().starts_with(prefix))
}

impl From<String> for ApprovalId {
    fn from(id: String) -> Self {
        if id.starts_with(TurnId::PREFIX) {
            Self::Turn(TurnId::named(id))
        } else if id.starts_with(QuestionId::PREFIX) {
            Self::Question(QuestionId::named(id))
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

impl From<QuestionId> for ApprovalId {
    fn from(question: QuestionId) -> Self {
        Self::Question(question)
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
