//! Finds the session of a desktop, or creates one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{MutexGuard, PoisonError};

use quintet_kernel::command::Command;
use quintet_kernel::event::NewSession;
use quintet_kernel::port::{Alias, Error};
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{SessionId, SessionSummary, State};

use super::decode::Open;
use super::reply::Reply;
use super::serve::AppState;
use super::tools;

/// The alias space of the names that desktops have for sessions.
const SPACE: &str = "jarvis_session_id";

/// Opens the session that a desktop prefers, the one with its name, or a new one. A session that was not
/// used for long is continued only on request.
pub(super) async fn open(app: &AppState, request: Open) -> Result<SessionId, Reply> {
    let Open { name, preferred, tools } = request;
    let alias = Alias { space: SPACE.into(), name };
    let current = app.services.directory.alias(&alias).await.map_err(Error::Storage)?;
    let preferred = preferred.as_deref().and_then(SessionId::parse);
    if let Some(summary) = existing(app, preferred.as_ref()).await? {
        resume(app, &summary.id, tools).await?;
        set_alias(app, &alias, &summary.id, current.as_ref()).await?;
        return Ok(summary.id);
    }
    if let Some(summary) = existing(app, current.as_ref()).await?
        && !expired(app, &summary)
    {
        resume(app, &summary.id, tools).await?;
        return Ok(summary.id);
    }
    let new = create(app, &alias, &tools).await?;
    let holder = set_alias(app, &alias, &new, current.as_ref()).await?;
    if holder == new {
        return Ok(new);
    }
    // Another request with the same name was faster: its session is used, and the new one was never used.
    let reason = Some("another session has its name".to_owned());
    app.services.sessions.submit(&new, Command::Close { reason }).await?;
    if let Some(summary) = existing(app, Some(&holder)).await? {
        resume(app, &summary.id, tools).await?;
    }
    Ok(holder)
}

async fn existing(app: &AppState, id: Option<&SessionId>) -> Result<Option<SessionSummary>, Reply> {
    let Some(id) = id else { return Ok(None) };
    match app.services.sessions.summary(id).await {
        Ok(summary) => Ok(Some(summary)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn expired(app: &AppState, summary: &SessionSummary) -> bool {
    let unused = app.services.clock.now().since(summary.updated);
    !summary.open && app.settings.expiry.is_some_and(|expiry| unused >= expiry)
}

/// Adds a desktop's tools to a session. While a turn is open they wait for the next message, because a turn
/// keeps the tools that it started with.
async fn resume(app: &AppState, id: &SessionId, added: Vec<ClientTool>) -> Result<(), Reply> {
    let state = app.services.sessions.view(id).await?;
    let toolset = tools::of_resumed(&state, &app.settings.toolset, &added);
    if toolset == state.toolset {
        return Ok(());
    }
    if state.open.is_some() {
        return match toolset.validation_error().or_else(|| tools::name_conflict(&state, &added)) {
            Some(fault) => Err(Reply::new(400, "INVALID_TOOLS", fault)),
            None => {
                app.add_pending_tools(id, added);
                Ok(())
            }
        };
    }
    drop(state);
    app.services.sessions.submit(id, Command::SetTools(toolset)).await?;
    Ok(())
}

impl AppState {
    /// Stores tools for the next message to a session.
    fn add_pending_tools(&self, session: &SessionId, added: Vec<ClientTool>) {
        self.pending().insert(session.clone(), added);
    }

    /// The tools of a session including pending ones; `None` if none are pending.
    pub(super) fn with_pending_tools(&self, state: &State) -> Option<Toolset> {
        let pending = self.pending();
        let added = pending.get(&state.id)?;
        Some(tools::of_resumed(state, &self.settings.toolset, added))
    }

    /// Removes the pending tools, which a message has added.
    pub(super) fn clear_pending_tools(&self, session: &SessionId) {
        self.pending().remove(session);
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<ClientTool>>> {
        self.pending_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn create(app: &AppState, alias: &Alias, added: &[ClientTool]) -> Result<SessionId, Reply> {
    let toolset = tools::of_new(&app.settings.toolset, added);
    if let Some(fault) = toolset.validation_error() {
        return Err(Reply::new(400, "INVALID_TOOLS", fault));
    }
    let workspace = app.workspace().await?.to_owned();
    let labels = BTreeMap::from([(SPACE.to_owned(), alias.name.clone())]);
    let origin =
        NewSession { workspace, labels, toolset: Some(Box::new(toolset)), ..NewSession::default() };
    Ok(app.services.sessions.create(origin).await?.session)
}

/// Sets the alias of a session, unless another request was faster. Returns the session that has the alias.
async fn set_alias(
    app: &AppState,
    alias: &Alias,
    session: &SessionId,
    current: Option<&SessionId>,
) -> Result<SessionId, Reply> {
    if current == Some(session) {
        return Ok(session.clone());
    }
    let holder = app.services.directory.set_alias(alias, session, current).await;
    Ok(holder.map_err(Error::Storage)?)
}
