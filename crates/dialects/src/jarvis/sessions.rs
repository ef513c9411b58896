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

/// The session that a desktop wants: the one it would like, the one that goes by its name, or a new
/// one. A session that nobody used for long is only gone on with if it is asked for.
pub(super) async fn open(app: &AppState, asked: Open) -> Result<SessionId, Reply> {
    let Open { name, preferred, tools } = asked;
    let alias = Alias { space: SPACE.into(), name };
    let held = app.services.directory.alias(&alias).await.map_err(Error::Storage)?;
    let preferred = preferred.as_deref().and_then(SessionId::parse);
    if let Some(summary) = found(app, preferred.as_ref()).await? {
        resume(app, &summary.id, tools).await?;
        named(app, &alias, &summary.id, held.as_ref()).await?;
        return Ok(summary.id);
    }
    if let Some(summary) = found(app, held.as_ref()).await?
        && !expired(app, &summary)
    {
        resume(app, &summary.id, tools).await?;
        return Ok(summary.id);
    }
    let new = begin(app, &alias, &tools).await?;
    let holder = named(app, &alias, &new, held.as_ref()).await?;
    if holder == new {
        return Ok(new);
    }
    // Somebody with the same name was faster: theirs counts, and ours was never used.
    let reason = Some("another session has its name".to_owned());
    app.services.sessions.submit(&new, Command::Close { reason }).await?;
    if let Some(summary) = found(app, Some(&holder)).await? {
        resume(app, &summary.id, tools).await?;
    }
    Ok(holder)
}

async fn found(app: &AppState, id: Option<&SessionId>) -> Result<Option<SessionSummary>, Reply> {
    let Some(id) = id else { return Ok(None) };
    match app.services.sessions.summary(id).await {
        Ok(summary) => Ok(Some(summary)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn expired(app: &AppState, summary: &SessionSummary) -> bool {
    let rested = app.services.clock.now().since(summary.updated);
    !summary.open && app.settings.expiry.is_some_and(|expiry| rested >= expiry)
}

/// Adds a desktop's tools to a session. While a turn is under way they wait for the next message: a
/// turn keeps the tools that it began with.
async fn resume(app: &AppState, id: &SessionId, brought: Vec<ClientTool>) -> Result<(), Reply> {
    let state = app.services.sessions.view(id).await?;
    let toolset = tools::of_resumed(&state, &app.settings.toolset, &brought);
    if toolset == state.toolset {
        return Ok(());
    }
    if state.open.is_some() {
        return match toolset.validation_error().or_else(|| tools::name_conflict(&state, &brought)) {
            Some(fault) => Err(Reply::new(400, "INVALID_TOOLS", fault)),
            None => {
                app.wait_with_tools(id, brought);
                Ok(())
            }
        };
    }
    drop(state);
    app.services.sessions.submit(id, Command::SetTools(toolset)).await?;
    Ok(())
}

impl AppState {
    /// Keeps tools for the next message to a session.
    fn wait_with_tools(&self, session: &SessionId, brought: Vec<ClientTool>) {
        self.waiting().insert(session.clone(), brought);
    }

    /// The tools of a session with those that waited for a message, if any did.
    pub(super) fn waiting_tools(&self, state: &State) -> Option<Toolset> {
        let waiting = self.waiting();
        let brought = waiting.get(&state.id)?;
        Some(tools::of_resumed(state, &self.settings.toolset, brought))
    }

    /// A message took the tools along that waited for it.
    pub(super) fn tools_taken(&self, session: &SessionId) {
        self.waiting().remove(session);
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<ClientTool>>> {
        self.pending_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn begin(app: &AppState, alias: &Alias, brought: &[ClientTool]) -> Result<SessionId, Reply> {
    let toolset = tools::of_new(&app.settings.toolset, brought);
    if let Some(fault) = toolset.validation_error() {
        return Err(Reply::new(400, "INVALID_TOOLS", fault));
    }
    let workspace = app.workspace().await?.to_owned();
    let labels = BTreeMap::from([(SPACE.to_owned(), alias.name.clone())]);
    let origin =
        NewSession { workspace, labels, toolset: Some(Box::new(toolset)), ..NewSession::default() };
    Ok(app.services.sessions.create(origin).await?.session)
}

/// Has a session go by a name, unless somebody was faster; returns the session that does.
async fn named(
    app: &AppState,
    alias: &Alias,
    session: &SessionId,
    held: Option<&SessionId>,
) -> Result<SessionId, Reply> {
    if held == Some(session) {
        return Ok(session.clone());
    }
    let named = app.services.directory.set_alias(alias, session, held).await;
    Ok(named.map_err(Error::Storage)?)
}
