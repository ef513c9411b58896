//! Ids of responses, and of calls that clients run.
//!
//! A response is a part of a session, so its id consists of the session and the sequence of its first
//! event, and need not be stored. Call ids of models may be the same in two sessions, so the ids for
//! clients also contain the session.

use std::fmt;

use quintet_kernel::event::Seq;
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::{CallId, SessionId};

/// The id of a response: a session and its first event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResponseId {
    pub(super) session: SessionId,
    pub(super) begins: Seq,
}

impl ResponseId {
    /// Parses an id that a client sent.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (session, begins) = text.strip_prefix("resp_")?.rsplit_once('_')?;
        let plain = begins.bytes().all(|byte| byte.is_ascii_digit());
        let begins = begins.parse().ok().filter(|begins| plain && *begins > 0)?;
        Some(Self { session: full_id(session)?, begins })
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}_{}", short(&self.session), self.begins)
    }
}

/// The id of a call that a client runs: the call and its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientCallId {
    pub(super) session: SessionId,
    pub(super) call: CallId,
}

impl ClientCallId {
    /// Parses an id that a client sent; `None` if it is not such an id.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (session, call) = text.strip_prefix("call_")?.split_once('-')?;
        Some(Self { session: full_id(session)?, call: CallId::parse(call)? })
    }
}

impl fmt::Display for ClientCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call_{}-{}", short(&self.session), self.call)
    }
}

fn short(session: &SessionId) -> &str {
    session.as_str().strip_prefix(SessionId::PREFIX).unwrap_or(session.as_str())
}

fn full_id(short: &str) -> Option<SessionId> {
    let full = || SessionId::parse(&format!("{}{short}", SessionId::PREFIX));
    if short.is_empty() { None } else { full() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_parse_what_they_print() {
        let session = SessionId::parse("sess_20250101t000000z_abcdefghijklmnop").unwrap();
        let response = ResponseId { session: session.clone(), begins: 17 };
        let text = response.to_string();
        assert_eq!(text, "resp_20250101t000000z_abcdefghijklmnop_17");
        assert_eq!(ResponseId::parse(&text), Some(response));
        let call = ClientCallId { session, call: CallId::parse("call_x-1").unwrap() };
        let text = call.to_string();
        assert_eq!(text, "call_20250101t000000z_abcdefghijklmnop-call_x-1");
        assert_eq!(ClientCallId::parse(&text), Some(call));
        for bad in
            ["", "resp_", "resp__1", "resp_a_", "resp_a_0", "resp_a_+1", "resp_../x_1", "x_a_1"]
        {
            assert_eq!(ResponseId::parse(bad), None, "{bad:?}");
        }
        for bad in ["", "call_1", "call_-", "call_a-", "call_a-../x", "call_../a-b"] {
            assert_eq!(ClientCallId::parse(bad), None, "{bad:?}");
        }
    }
}
