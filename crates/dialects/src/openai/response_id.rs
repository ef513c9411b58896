//! Ids of responses and of calls that callers run.
//!
//! A response is the part of a session that begins with one of its events, so its id consists of the session
//! and the number of that event, and need not be stored. Call ids of models may be the same in two sessions, so
//! the ids for callers also name the session.

use std::fmt;

use quintet_kernel::event::Seq;
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::{CallId, SessionId};

/// A response: a session and the event that the response begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) session: SessionId,
    pub(super) begins: Seq,
}

impl ResponseId {
    /// Reads an id that a caller gave.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (session, begins) = text.strip_prefix("resp_")?.rsplit_once('_')?;
        let plain = begins.bytes().all(|byte| byte.is_ascii_digit());
        let begins = begins.parse().ok().filter(|begins| plain && *begins > 0)?;
        Some(Self { session: session_named(session)?, begins })
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}_{}", short(&self.session), self.begins)
    }
}

/// A call that a caller runs, and its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallerCall {
    pub(super) session: SessionId,
    pub(super) call: CallId,
}

impl CallerCall {
    /// Reads an id that a caller gave; `None` if no agent here gave it out.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (session, call) = text.strip_prefix("call_")?.split_once('-')?;
        Some(Self { session: session_named(session)?, call: CallId::parse(call)? })
    }
}

impl fmt::Display for CallerCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call_{}-{}", short(&self.session), self.call)
    }
}

fn short(session: &SessionId) -> &str {
    session.as_str().strip_prefix(SessionId::PREFIX).unwrap_or(session.as_str())
}

fn session_named(short: &str) -> Option<SessionId> {
    let named = || SessionId::parse(&format!("{}{short}", SessionId::PREFIX));
    if short.is_empty() { None } else { named() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_what_they_write() {
        let session = SessionId::parse("sess_20250101t000000z_abcdefghijklmnop").unwrap();
        let response = ResponseId { session: session.clone(), begins: 17 };
        let text = response.to_string();
        assert_eq!(text, "resp_20250101t000000z_abcdefghijklmnop_17");
        assert_eq!(ResponseId::parse(&text), Some(response));
        let call = CallerCall { session, call: CallId::parse("call_x-1").unwrap() };
        let text = call.to_string();
        assert_eq!(text, "call_20250101t000000z_abcdefghijklmnop-call_x-1");
        assert_eq!(CallerCall::parse(&text), Some(call));
        for bad in
            ["", "resp_", "resp__1", "resp_a_", "resp_a_0", "resp_a_+1", "resp_../x_1", "x_a_1"]
        {
            assert_eq!(ResponseId::parse(bad), None, "{bad:?}");
        }
        for bad in ["", "call_1", "call_-", "call_a-", "call_a-../x", "call_../a-b"] {
            assert_eq!(CallerCall::parse(bad), None, "{bad:?}");
        }
    }
}
