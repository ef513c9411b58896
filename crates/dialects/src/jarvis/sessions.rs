//! Finds the session that a desktop means, or begins one.

use std::collections::BTreeMap;
use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::Origin;
use quintet_kernel::port::{Alias, Error};
use quintet_kernel::toolset::ClientTool;
use quintet_kernel::{SessionId, State};

use super::decode::Open;
use super::reply::Reply;
use super::serve::Desk;
use super::tools;

/// Whose names desktops' own names of sessions are.
const SPACE: &str = "jarvis_session_id";

/// The session that a desktop wants: the one it would like, the one that goes by its name, or a new
/// one. A session that nobody used for long is only gone on with if it is asked for.
pub(super) async fn open(desk: &Desk, asked: Open) -> Result<SessionId, Reply> {
    let Open { name, preferred, tools } = asked;
    let alias = Alias { space: SPACE.into(), name };
    let held = desk.ports.directory.alias(&alias).await.map_err(Error::Storage)?;
    let preferred = preferred.as_deref().and_then(SessionId::parse);
    if let Some(state) = found(desk, preferred.as_ref()).await? {
        resume(desk, &state, &tools).await?;
        named(desk, &alias, &state.id, held.as_ref()).await?;
        return Ok(state.id.clone());
    }
    if let Some(state) = found(desk, held.as_ref()).await?
        && !expired(desk, &state)
    {
        resume(desk, &state, &tools).await?;
        return Ok(state.id.clone());
    }
    let new = begin(desk, &alias, &tools).await?;
    let holder = named(desk, &alias, &new, held.as_ref()).await?;
    if holder == new {
        return Ok(new);
    }
    // Somebody with the same name was faster: theirs counts, and ours was never used.
    let reason = Some("another session has its name".to_owned());
    desk.ports.sessions.submit(&new, Command::Close { reason }).await?;
    if let Some(state) = found(desk, Some(&holder)).await? {
        resume(desk, &state, &tools).await?;
    }
    Ok(holder)
}

async fn found(desk: &Desk, id: Option<&SessionId>) -> Result<Option<Arc<State>>, Reply> {
    let Some(id) = id else { return Ok(None) };
    match desk.ports.sessions.view(id).await {
        Ok(state) => Ok(Some(state)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn expired(desk: &Desk, state: &State) -> bool {
    let rested = desk.ports.stamps.now().since(state.updated);
    !state.busy() && desk.settings.expiry.is_some_and(|expiry| rested >= expiry)
}

async fn resume(desk: &Desk, state: &State, brought: &[ClientTool]) -> Result<(), Reply> {
    let toolset = tools::of_resumed(state, &desk.settings.toolset, brought);
    desk.ports.sessions.submit(&state.id, Command::Offer(toolset)).await?;
    Ok(())
}

async fn begin(desk: &Desk, alias: &Alias, brought: &[ClientTool]) -> Result<SessionId, Reply> {
    let toolset = tools::of_new(&desk.settings.toolset, brought);
    if let Some(fault) = toolset.fault() {
        return Err(Reply::new(400, "INVALID_TOOLS", fault));
    }
    let workspace = desk.workspace().await?.to_owned();
    let labels = BTreeMap::from([(SPACE.to_owned(), alias.name.clone())]);
    let origin =
        Origin { workspace, labels, toolset: Some(Box::new(toolset)), ..Origin::default() };
    Ok(desk.ports.sessions.create(origin).await?.session)
}

/// Has a session go by a name, unless somebody was faster; gives the session that does.
async fn named(
    desk: &Desk,
    alias: &Alias,
    session: &SessionId,
    held: Option<&SessionId>,
) -> Result<SessionId, Reply> {
    if held == Some(session) {
        return Ok(session.clone());
    }
    let named = desk.ports.directory.set_alias(alias, session, held).await;
    Ok(named.map_err(Error::Storage)?)
}
