//! Resolves the session that a client names.
//!
//! The original client shows a list with numbers and the first eight characters of each id, which are the
//! same for all ids of a decade. A session can therefore also be named by its number in that list, or by a
//! unique part of its id.

use quintet_kernel::{SessionId, SessionSummary, port};
use serde_json::json;

use super::super::decode::rpc_error;
use super::super::shape;
use super::Connection;
use super::sessions::SESSIONS_SCANNED_LIMIT;
use crate::jsonrpc::{Error, INVALID_PARAMS};

/// The minimum lengths of a prefix of an id, and of a prefix of its unique part.
const ID_PREFIX_MINIMUM: usize = 8;
const ID_SUFFIX_MINIMUM: usize = 4;
/// The most sessions that an error mentions if a name is ambiguous.
const MENTIONED_LIMIT: usize = 5;

impl Connection {
    /// Finds a session by its id, its number in the last list, or part of its id. Fails if there is none or
    /// it is ambiguous.
    pub(super) async fn resolve(&mut self, name: SessionId) -> Result<SessionId, Error> {
        let unknown = match self.app.services.sessions.summary(&name).await {
            Ok(_) => return Ok(name),
            Err(error @ port::Error::NotFound(_)) => error,
            Err(error) => return Err(rpc_error(&error)),
        };
        if let Some(session) = by_number(&self.listed, name.as_str()) {
            return Ok(session.clone());
        }
        let summaries = self.app.services.sessions.list(SESSIONS_SCANNED_LIMIT).await;
        let mut summaries = summaries.map_err(|error| rpc_error(&error))?;
        let is_all = summaries.len() < SESSIONS_SCANNED_LIMIT;
        summaries.retain(|summary| matches_name(summary.id.as_str(), name.as_str()));
        match summaries.as_slice() {
            [] => Err(rpc_error(&unknown)),
            // There may be another match among sessions that were not checked.
            [only] if is_all || unique_part(only.id.as_str()).starts_with(name.as_str()) => {
                Ok(only.id.clone())
            }
            several => Err(ambiguous(&name, several)),
        }
    }
}

fn by_number<'a>(listed: &'a [SessionId], name: &str) -> Option<&'a SessionId> {
    let number: usize = name.parse().ok()?;
    listed.get(number.checked_sub(1)?)
}

fn matches_name(id: &str, name: &str) -> bool {
    let is_prefix = name.len() >= ID_PREFIX_MINIMUM && id.starts_with(name);
    is_prefix || name.len() >= ID_SUFFIX_MINIMUM && unique_part(id).starts_with(name)
}

/// The part of an id that is unique.
fn unique_part(id: &str) -> &str {
    id.rsplit('_').next().unwrap_or(id)
}

fn ambiguous(name: &SessionId, several: &[SessionSummary]) -> Error {
    let mention = |summary: &SessionSummary| {
        let id = unique_part(summary.id.as_str());
        format!(
            "{} ({})",
            &id[..id.floor_char_boundary(ID_PREFIX_MINIMUM)],
            shape::title(&summary.title)
        )
    };
    let some: Vec<String> = several.iter().take(MENTIONED_LIMIT).map(mention).collect();
    let more = if several.len() > MENTIONED_LIMIT { ", …" } else { "" };
    let message = format!(
        "Invalid params: {name} matches {} sessions; name one by its number in session.list or as {}{more}",
        several.len(),
        some.join(", "),
    );
    Error::new(INVALID_PARAMS, message).with(json!({ "field": "session_id" }))
}
