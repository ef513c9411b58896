//! Imports transcripts of other agents.

use quintet_kernel::SessionId;
use quintet_kernel::command::Command;
use quintet_kernel::event::NewSession;
use quintet_kernel::port::{Alias, Error as PortError};
use serde_json::{Value, json};

use super::super::decode::Import;
use super::Connection;
use super::requests::{Outcome, rpc_error};

/// The alias space of imported transcripts.
const SPACE: &str = "import";

impl Connection {
    /// Creates a session from a transcript, unless the transcript was imported before.
    pub(super) async fn import(&mut self, import: Import) -> Outcome {
        let Import { source, id, cwd, messages } = import;
        let alias = Alias { space: SPACE.into(), name: format!("{source}:{id}") };
        let directory = &self.app.services.directory;
        let known = directory.alias(&alias).await.map_err(|error| rpc_error(&error.into()))?;
        if let Some(known) = &known
            && directory.summary(known).await.is_ok_and(|summary| summary.is_some())
        {
            return Ok(answer(known, false));
        }
        let sessions = &self.app.services.sessions;
        let origin = NewSession { workspace: cwd, ..NewSession::default() };
        let session = sessions.create(origin).await.map_err(|error| rpc_error(&error))?.session;
        let import = Command::ImportMessages { messages, instead: false };
        let stored = match sessions.submit(&session, import).await {
            Ok(_) => {
                directory.set_alias(&alias, &session, known.as_ref()).await.map_err(PortError::from)
            }
            Err(error) => Err(error),
        };
        match stored {
            Ok(named) if named == session => Ok(answer(&session, true)),
            // Another import was faster, or the name could not be stored: the new session is deleted.
            stored => {
                let removed = self.app.services.sessions.remove(&session).await;
                removed.map_err(|error| rpc_error(&error))?;
                stored.map(|named| answer(&named, false)).map_err(|error| rpc_error(&error))
            }
        }
    }
}

fn answer(session: &SessionId, imported: bool) -> Value {
    json!({ "sessionId": session.as_str(), "imported": imported })
}
