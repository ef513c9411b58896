//! Resolves the session that a client names.
//!
//! The original client shows a list with numbers and the first eight letters of each id, which are the same for
//! all ids of a decade. A session can therefore also be named by its number in that list, or by a unique part
//! of its id.

use quintet_kernel::{SessionId, SessionSummary, port};
use serde_json::json;

use super::super::decode::refusal;
use super::super::shape;
use super::Connection;
use super::sessions::SESSIONS_SCANNED_LIMIT;
use crate::jsonrpc::{Error, INVALID_PARAMS};

/// The fewest letters that name a session: from the beginning of an id, and from its own part.
const ID_PREFIX_MINIMUM: usize = 8;
const ID_SUFFIX_MINIMUM: usize = 4;
/// How many sessions are mentioned where a name fits several.
const MENTIONED_LIMIT: usize = 5;

impl Connection {
    /// The session that goes by a name: its id, its number in the last list, or part of its id.
    pub(super) async fn named(&mut self, name: SessionId) -> Result<SessionId, Error> {
        let unknown = match self.app.services.sessions.summary(&name).await {
            Ok(_) => return Ok(name),
            Err(error @ port::Error::NotFound(_)) => error,
            Err(error) => return Err(refusal(&error)),
        };
        if let Some(session) = numbered(&self.listed, name.as_str()) {
            return Ok(session.clone());
        }
        let summaries = self.app.services.sessions.list(SESSIONS_SCANNED_LIMIT).await;
        let mut summaries = summaries.map_err(|error| refusal(&error))?;
        let all = summaries.len() < SESSIONS_SCANNED_LIMIT;
        summaries.retain(|summary| fits(summary.id.as_str(), name.as_str()));
        match summaries.as_slice() {
            [] => Err(refusal(&unknown)),
            // Among more sessions than were looked at another may begin like this.
            [only] if all || own_part(only.id.as_str()).starts_with(name.as_str()) => {
                Ok(only.id.clone())
            }
            several => Err(ambiguous(&name, several)),
        }
    }
}

fn numbered<'a>(listed: &'a [SessionId], name: &str) -> Option<&'a SessionId> {
    let number: usize = name.parse().ok()?;
    listed.get(number.checked_sub(1)?)
}

fn fits(id: &str, name: &str) -> bool {
    let from_beginning = name.len() >= ID_PREFIX_MINIMUM && id.starts_with(name);
    from_beginning || name.len() >= ID_SUFFIX_MINIMUM && own_part(id).starts_with(name)
}

/// The part of an id that no other shares.
fn own_part(id: &str) -> &str {
    id.rsplit('_').next().unwrap_or(id)
}

fn ambiguous(name: &SessionId, several: &[SessionSummary]) -> Error {
    let mention = |summary: &SessionSummary| {
        let id = own_part(summary.id.as_str());
        format!(
            "{} ({})",
            &id[..id.floor_char_boundary(ID_PREFIX_MINIMUM)],
            shape::title(&summary.title)
        )
    };
    let some: Vec<String> = several.iter().take(MENTIONED_LIMIT).map(mention).collect();
    let more = if several.len() > MENTIONED_LIMIT { ", …" } else { "" };
    let message = format!(
        "Invalid params: {name} fits {} sessions; name one by its number in session.list or as {}{more}",
        several.len(),
        some.join(", "),
    );
    Error::new(INVALID_PARAMS, message).with(json!({ "field": "session_id" }))
}
