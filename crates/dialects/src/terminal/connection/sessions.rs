//! The sessions of a client: the current one, and requests to open, save, list and delete others.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::NewSession;
use quintet_kernel::port;
use quintet_kernel::{Cursor, SessionId, State};
use serde_json::{Value, json};

use super::super::decode::{Client, Format, rpc_error};
use super::super::{encode, saved_session, shape, wire};
use super::{Connection, FollowedSession};
use crate::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};

/// Sessions that are read to find the most recently changed ones.
pub(super) const SESSIONS_SCANNED_LIMIT: usize = 1000;
/// The longest export in one message.
const EXPORT_BYTES_LIMIT: usize = 8 * 1024 * 1024;

impl Connection {
    /// The current session, which is created by the first query.
    pub(super) async fn conversation(&mut self) -> Result<SessionId, Error> {
        if let Some(entry) = self.followed.last() {
            return Ok(entry.session.clone());
        }
        let cwd = self.link.context.cwd.clone().or_else(|| self.peer.directory());
        let workspace = cwd.ok_or_else(|| Error::field("context.cwd", "an absolute path"))?;
        let name = self.link.client.as_ref().map(|client| client.name.clone());
        let name = name.filter(|name| !name.is_empty());
        let labels = name.map(|name| ("client".to_owned(), name)).into_iter().collect();
        self.create(workspace, labels).await
    }

    async fn create(
        &mut self,
        workspace: PathBuf,
        labels: BTreeMap<String, String>,
    ) -> Result<SessionId, Error> {
        let origin = NewSession { workspace, labels, ..NewSession::default() };
        let created = self.app.services.sessions.create(origin).await;
        let session = created.map_err(|error| rpc_error(&error))?.session;
        self.attach(&session, 0).await?;
        Ok(session)
    }

    /// Makes a session the current one and follows it.
    async fn attach(&mut self, session: &SessionId, received: u64) -> Result<Arc<State>, Error> {
        let state = self.view(session).await?;
        if let Some(index) = self.followed.iter().position(|entry| entry.session == *session) {
            // The session is already followed; its state is kept.
            let entry = self.followed.remove(index);
            self.followed.push(entry);
            return Ok(state);
        }
        let follow = self.app.services.sessions.follow(session, Cursor::START).await;
        let follow = follow.map_err(|error| rpc_error(&error))?;
        let client_kind = self.link.client.as_ref().map(Client::client_kind).unwrap_or_default();
        let link = encode::Link::new(&state, received, client_kind);
        self.followed.push(FollowedSession { session: session.clone(), follow, link });
        self.last_context = None;
        // An opened session keeps its workspace until the client changes its directory.
        self.link.context.clear_moved();
        self.drop_left_sessions();
        Ok(state)
    }

    pub(super) async fn load(&mut self, session: SessionId, received: u64) -> Result<Value, Error> {
        let session = self.resolve(session).await?;
        let state = self.attach(&session, received).await?;
        Ok(shape::loaded(&state))
    }

    pub(super) async fn list(&mut self, limit: usize) -> Result<Value, Error> {
        let summaries = self.app.services.sessions.list(SESSIONS_SCANNED_LIMIT).await;
        let mut summaries = summaries.map_err(|error| rpc_error(&error))?;
        summaries.sort_by_key(|summary| Reverse(summary.updated));
        summaries.truncate(limit);
        let sessions: Vec<Value> = summaries.iter().map(shape::summary).collect();
        self.listed = summaries.into_iter().map(|summary| summary.id).collect();
        Ok(json!({ "status": "success", "sessions": sessions }))
    }

    pub(super) async fn export(
        &mut self,
        session: Option<SessionId>,
        format: Format,
    ) -> Result<Value, Error> {
        let state = self.named_or_current(session).await?;
        let content = match format {
            Format::Markdown => shape::markdown(&state),
            Format::Json => {
                String::from_utf8_lossy(&saved_session::write(&state, true, true)).into_owned()
            }
        };
        if content.len() > EXPORT_BYTES_LIMIT {
            let why = "the session is too long for one message; session.save writes it to a file";
            return Err(Error::new(wire::AGENT_ERROR, why));
        }
        let (session_id, format) = (state.id.as_str(), format.name());
        Ok(
            json!({ "status": "success", "session_id": session_id, "format": format, "content": content }),
        )
    }

    pub(super) async fn delete(&mut self, session: SessionId) -> Result<Value, Error> {
        let session = self.resolve(session).await?;
        let removed = self.app.services.sessions.remove(&session).await;
        removed.map_err(|error| rpc_error(&error))?;
        self.followed.retain(|entry| entry.session != session);
        Ok(json!({ "status": "success", "deleted": true, "session_id": session.as_str() }))
    }

    pub(super) async fn save(
        &mut self,
        path: PathBuf,
        history: bool,
        blocks: bool,
    ) -> Result<Value, Error> {
        let state = self.named_or_current(None).await?;
        let folders = self.app.settings.folders.clone();
        let target = path.clone();
        let size = blocking(move || {
            folders.write(&target, &saved_session::write(&state, history, blocks))
        });
        let size = size.await.map_err(|error| file_error(&error))?;
        Ok(json!({ "saved": true, "path": path, "size": size }))
    }

    /// Opens a saved session. If the session exists here, it is continued; otherwise it is imported.
    pub(super) async fn load_file(&mut self, path: PathBuf) -> Result<Value, Error> {
        let folders = self.app.settings.folders.clone();
        let content = blocking(move || folders.read(&path)).await;
        let content = content.map_err(|error| file_error(&error))?;
        let saved = saved_session::read(&content).map_err(|why| {
            Error::new(
                INVALID_PARAMS,
                format!("Invalid params: path is not a saved session: {why}"),
            )
            .with(json!({ "field": "path" }))
        })?;
        match self.app.services.sessions.summary(&saved.session).await {
            Ok(_) => return self.load(saved.session, 0).await,
            Err(port::Error::NotFound(_)) => {}
            Err(error) => return Err(rpc_error(&error)),
        }
        let labels = BTreeMap::from([("saved_as".to_owned(), saved.session.to_string())]);
        let session = self.create(saved.workspace, labels).await?;
        let command = Command::ImportMessages { messages: saved.messages, instead: false };
        self.submit(&session, command).await.map_err(|error| rpc_error(&error))?;
        self.load(session, 0).await
    }

    pub(super) async fn view(&mut self, session: &SessionId) -> Result<Arc<State>, Error> {
        self.app.services.sessions.view(session).await.map_err(|error| rpc_error(&error))
    }

    async fn named_or_current(&mut self, named: Option<SessionId>) -> Result<Arc<State>, Error> {
        let current = self.followed.last().map(|entry| entry.session.clone());
        let named = match named {
            Some(named) => Some(self.resolve(named).await?),
            None => current,
        };
        match named {
            Some(session) => self.view(&session).await,
            None => {
                Err(Error::new(wire::AGENT_ERROR, "there is no session yet; send a query first"))
            }
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn file_error(error: &io::Error) -> Error {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => wire::PERMISSION_DENIED,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
            INVALID_PARAMS
        }
        // A symbolic link in the path.
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            wire::PERMISSION_DENIED
        }
        _ => INTERNAL_ERROR,
    };
    Error::new(code, format!("path: {error}")).with(json!({ "field": "path" }))
}
