//! Carries out what clients want.

use std::sync::Arc;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{self, Receipt};
use quintet_kernel::{Cursor, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::history::{Events, History};
use super::serve::Desk;
use super::shown::Shown;
use super::talk::Meant;
use super::wire::{BUSY, NOTHING_PENDING, SESSION_NOT_FOUND};
use super::wish::Wish;
use crate::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};

/// How many of the newest sessions are looked at to count those that work.
pub(super) const LOOKED_AT: usize = 100;

/// What came of a wish.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Value,
    pub(super) then: Then,
}

/// What the connection does once the client has its answer.
#[derive(Debug)]
pub(super) enum Then {
    /// Nothing.
    Nothing,
    /// It tells of the session from an event on, unless it does already.
    Watch(SessionId, Seq),
    /// The same, and a client of the original server is told of no other session.
    Bind(SessionId, Seq),
    /// It goes on telling where the answer ends.
    GoOn(Box<Events>),
    /// It tells of the session no more.
    Leave(SessionId),
}

impl From<Value> for Done {
    fn from(result: Value) -> Self {
        Self { result, then: Then::Nothing }
    }
}

impl Desk {
    /// Carries out a wish of a client that was shown these questions.
    pub(super) async fn carry_out(&self, wish: Wish, shown: &Shown) -> Result<Done, Error> {
        match wish {
            Wish::Create(begin) => self.create(begin).await,
            Wish::List { workspace, limit } => self.list(workspace.as_deref(), limit).await,
            Wish::Get(session) => Ok(self.get(&session).await?.into()),
            Wish::Resume(session) => self.resume(session, true).await,
            Wish::Watch(session) => self.resume(session, false).await,
            Wish::Head(session) => self.newest(session).await,
            Wish::Fork { session, at, name, model } => self.fork(session, at, (name, model)).await,
            Wish::Delete(session) => self.delete(session).await,
            Wish::Branches(session) => self.branches(&session).await,
            Wish::Message(message) => self.message(message).await,
            Wish::Abort(session) => self.abort(&session).await,
            Wish::Respond { session, call, response } => {
                let meant = call.as_deref().map_or(Meant::Only(shown), Meant::Named);
                self.respond(session, meant, response).await
            }
            Wish::Doing(session) => self.doing(&session).await,
            Wish::Models => Ok(self.models().await.into()),
            Wish::Switch { session, model } => self.switch(&session, &model).await,
            Wish::Context(session) => self.context(&session).await,
            Wish::Snapshot { session, whole } => self.snapshot(&session, whole).await,
            Wish::Room { session, expected } => self.room(&session, expected).await,
            Wish::Compact { session, summary } => self.compact(&session, summary).await,
            Wish::Preview(session) => self.preview(&session).await,
            Wish::Clear(session) => self.clear(&session).await,
            Wish::Events(read) => self.events(&read).await,
            Wish::Backwards(read) => self.backwards(&read).await,
            Wish::Sync(read) => self.sync(&read).await,
            Wish::Unwatch(session) => {
                Ok(Done { result: json!({ "success": true }), then: Then::Leave(session) })
            }
            Wish::Ping => Ok(json!({ "pong": true, "timestamp": self.now().to_millis() }).into()),
            Wish::Info => self.info().await,
            Wish::Ancestors(read) => self.ancestors(&read).await,
            Wish::Tree { session, messages } => self.tree(session, messages).await,
            Wish::Folder { path, hidden } => self.folder(path.as_deref(), hidden).await,
            Wish::Home => Ok(self.home().await.into()),
            Wish::MakeFolder { path, parents } => self.make_folder(&path, parents).await,
            Wish::Fact(fact) => Ok(fact.into()),
        }
    }

    async fn info(&self) -> Result<Done, Error> {
        let recent = self.ports.branches.recent(None, LOOKED_AT).await.map_err(refused)?;
        Ok(json!({
            "name": "quintet",
            "version": env!("CARGO_PKG_VERSION"),
            "uptime": self.now().since(self.began).as_secs(),
            "activeSessions": recent.iter().filter(|card| card.open).count(),
            "defaultModel": self.settings.default_model,
        })
        .into())
    }

    pub(super) async fn view(&self, session: &SessionId) -> Result<Arc<State>, Error> {
        self.ports.sessions.view(session).await.map_err(refused)
    }

    pub(super) async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        let follow = self.ports.sessions.follow(session, Cursor::START).await.map_err(refused)?;
        Ok(follow.head())
    }

    /// The session's events.
    pub(super) async fn history(&self, session: &SessionId) -> Result<History<'_>, Error> {
        let card = self.ports.sessions.card(session).await.map_err(refused)?;
        let workspace = card.workspace.to_string_lossy().into_owned();
        let default = self.settings.default_model.clone();
        let current = card.model.as_ref().map_or_else(|| default.clone(), ToString::to_string);
        let (sessions, models) = (&*self.ports.sessions, (default, current));
        let (session, turns) = (session.clone(), card.last_turn.is_some());
        Ok(History { sessions, session, workspace, models, turns })
    }
}

/// Tells of a session from what a command led to on.
pub(super) fn watch(receipt: &Receipt) -> Then {
    match receipt.records.first() {
        Some(first) => Then::Watch(receipt.session.clone(), first.seq - 1),
        None => Then::Nothing,
    }
}

/// The core's "no", as this protocol says it.
pub(super) fn refused(error: port::Error) -> Error {
    let message = error.to_string();
    match error {
        port::Error::NotFound(id) | port::Error::Refused(Refusal::NotBegun(id)) => {
            Error::new(SESSION_NOT_FOUND, format!("Session does not exist: {id}"))
                .with(json!({ "sessionId": id.as_str() }))
        }
        port::Error::Refused(Refusal::Busy(id)) => {
            Error::new(BUSY, message).with(json!({ "sessionId": id.as_str(), "retryable": true }))
        }
        port::Error::Refused(
            Refusal::NothingPending(_)
            | Refusal::NotPending(_)
            | Refusal::CallOver(_)
            | Refusal::UnknownCall(_)
            | Refusal::NotDelegated(_)
            | Refusal::Claimed(_),
        ) => Error::new(NOTHING_PENDING, message),
        port::Error::Refused(_) | port::Error::Ahead(..) => Error::new(INVALID_PARAMS, message),
        port::Error::ReadOnly | port::Error::Closing | port::Error::Storage(_) => {
            Error::new(INTERNAL_ERROR, message)
        }
    }
}
