//! Ids by which clients return the results of calls. A call's own id is unique only within its session.

use quintet_kernel::{CallId, SessionId};

/// A call of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) session: SessionId,
    pub(super) call: CallId,
}

impl Request {
    /// Parses an id; `None` if it does not have this form.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (session, call) = name.split_once(':')?;
        Some(Self { session: SessionId::parse(session)?, call: CallId::parse(call)? })
    }
}

/// The client's id of a call of a session.
pub(super) fn name(session: &str, call: &CallId) -> String {
    format!("{session}:{call}")
}

#[cfg(test)]
mod tests;
