//! Maps conversations to sessions: the session of a user's conversation name, and the owner of a session.

use std::collections::BTreeMap;
use std::path::PathBuf;

use quintet_kernel::command::Command;
use quintet_kernel::event::NewSession;
use quintet_kernel::port::{Alias, Error, StorageError};
use quintet_kernel::session_summary::SessionSummary;
use quintet_kernel::{SessionId, Time};

use super::auth::User;
use super::serve::AppState;
use super::ws::acknowledged::{Client, REDELIVERY_WINDOW};

/// The label with the owner of a session.
pub(super) const OWNER: &str = "windie_user";
/// The label with the user's name of a session.
const NAME: &str = "windie_conversation";

/// Sessions that are searched for turns that a client may have missed.
const RECENT_SESSIONS_LIMIT: usize = 100;

/// The client of a connection or request.
#[derive(Clone, Debug)]
pub(super) struct ClientIdentity {
    /// The owner of everything that the client makes.
    pub(super) id: String,
    /// The registered user, where `install_auth` is on.
    pub(super) user: Option<User>,
}

impl ClientIdentity {
    /// Takes the user of the token, whatever id the client claims.
    pub(super) fn new(user: Option<User>, claimed: String) -> Self {
        let id = user.as_ref().map_or(claimed, |user| user.id.clone());
        Self { id, user }
    }
}

/// The labels of a session.
type Labels = BTreeMap<String, String>;

/// True if a session was created by this protocol.
pub(super) fn is_ours(labels: &Labels) -> bool {
    labels.contains_key(OWNER)
}

/// True if a client may see a session. Without install tokens, every client may also see sessions of other
/// protocols.
pub(super) fn may_see(app: &AppState, identity: &ClientIdentity, labels: &Labels) -> bool {
    match labels.get(OWNER) {
        Some(owner) => *owner == identity.id,
        None => !app.settings.install_auth,
    }
}

/// The user's name of a session; `None` if it is not a conversation of theirs.
fn name_of<'l>(labels: &'l Labels, user: &str) -> Option<&'l String> {
    labels.get(NAME).filter(|_| labels.get(OWNER).is_some_and(|owner| owner == user))
}

impl AppState {
    /// The session of a user's conversation, if there is one.
    pub(super) async fn known(
        &self,
        identity: &ClientIdentity,
        conversation: &str,
    ) -> Result<Option<SessionId>, Error> {
        let named = self.ports.directory.alias(&alias(&identity.id, conversation)).await?;
        self.named(identity, conversation, named).await
    }

    /// The session with the alias of a conversation, or else with its name as id, if it exists and the user
    /// may see it.
    async fn named(
        &self,
        identity: &ClientIdentity,
        conversation: &str,
        named: Option<SessionId>,
    ) -> Result<Option<SessionId>, Error> {
        let Some(session) = named.or_else(|| SessionId::parse(conversation)) else {
            return Ok(None);
        };
        match self.ports.sessions.summary(&session).await {
            Ok(summary) => Ok(may_see(self, identity, &summary.labels).then_some(session)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The session of a user's conversation, which is created if there is none.
    pub(super) async fn open(
        &self,
        identity: &ClientIdentity,
        conversation: &str,
        workspace: Option<PathBuf>,
    ) -> Result<SessionId, Error> {
        let user = identity.id.as_str();
        let alias = alias(user, conversation);
        let named = self.ports.directory.alias(&alias).await?;
        if let Some(session) = self.named(identity, conversation, named.clone()).await? {
            return Ok(session);
        }
        let workspace = match workspace {
            Some(workspace) => workspace,
            None => self.scratch(user).await?,
        };
        let labels = [(OWNER.to_owned(), user.to_owned()), (NAME.to_owned(), conversation.into())];
        let labels = BTreeMap::from(labels);
        let origin = NewSession { workspace, labels, ..NewSession::default() };
        let session = self.ports.sessions.create(origin).await?.session;
        // The alias may still refer to a session that no longer exists.
        let holder = self.ports.directory.set_alias(&alias, &session, named.as_ref()).await?;
        if holder != session {
            // Another connection was faster: its session is used, and this one never was.
            let reason = Some("another session has its name".to_owned());
            self.ports.sessions.submit(&session, Command::Close { reason }).await?;
        }
        Ok(holder)
    }

    /// The conversations with turns that a client may have missed, with its names of them. Sessions that
    /// cannot be read are left out.
    pub(super) async fn waiting(&self, client: &Client) -> Vec<(String, SessionId)> {
        let now = self.now();
        let mut waiting = Vec::new();
        for (name, session) in self.recent(client, now).await {
            let state = self.ports.sessions.view(&session).await;
            if state.is_ok_and(|state| self.acknowledged.is_awaited(client, &state, now)) {
                waiting.push((name, session));
            }
        }
        waiting
    }

    /// The conversations of a client that have an open turn or changed recently.
    async fn recent(&self, client: &Client, now: Time) -> Vec<(String, SessionId)> {
        let is_recent = |summary: &SessionSummary| {
            summary.open || now.since(summary.updated) < REDELIVERY_WINDOW
        };
        let mut found = Vec::new();
        for (name, session) in self.acknowledged.sessions(client) {
            if self.ports.sessions.summary(&session).await.is_ok_and(|it| is_recent(&it)) {
                found.push((name, session));
            }
        }
        let recent =
            self.ports.directory.recent(None, RECENT_SESSIONS_LIMIT).await.unwrap_or_default();
        for summary in recent.into_iter().filter(is_recent) {
            let known = found.iter().any(|(_, session)| *session == summary.id);
            if let Some(name) = name_of(&summary.labels, &client.user).filter(|_| !known) {
                found.push((name.clone(), summary.id));
            }
        }
        found
    }

    /// The user's scratch folder, for conversations without a folder of this machine.
    pub(super) fn scratch_path(&self, user: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
        let name: String = user.chars().map(plain).take(64).collect();
        self.settings.workspace.join(name)
    }

    /// The user's scratch folder, created if it is missing.
    async fn scratch(&self, user: &str) -> Result<PathBuf, Error> {
        let folder = self.scratch_path(user);
        let unavailable = |error: std::io::Error| {
            StorageError::Unavailable(format!("{}: {error}", folder.display()))
        };
        tokio::fs::create_dir_all(&folder).await.map_err(unavailable)?;
        Ok(folder)
    }
}

fn alias(user: &str, conversation: &str) -> Alias {
    Alias { space: format!("windie/{user}"), name: conversation.into() }
}
