//! Handles decoded requests.

use std::sync::Arc;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{self, Receipt};
use quintet_kernel::{Cursor, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::history::{Events, History};
use super::messages::AnswerTarget;
use super::request::Request;
use super::serve::AppState;
use super::shown_questions::ShownQuestions;
use super::wire::{BUSY, NOTHING_PENDING, SESSION_NOT_FOUND};
use crate::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};

/// The newest sessions that are read to count those with an open turn.
pub(super) const RECENT_LIMIT: usize = 100;

/// The result of a request.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) result: Value,
    pub(super) then: FollowUp,
}

/// What the connection does after it sent the response.
#[derive(Debug)]
pub(super) enum FollowUp {
    Nothing,
    /// Sends the session's events after this one, unless it does already.
    Subscribe(SessionId, Seq),
    /// Like `Subscribe`; a legacy client is sent the events of no other session.
    Bind(SessionId, Seq),
    /// Sends the events after those of the response.
    Continue(Box<Events>),
    /// Sends no more events of the session.
    Unsubscribe(SessionId),
}

impl From<Value> for Reply {
    fn from(result: Value) -> Self {
        Self { result, then: FollowUp::Nothing }
    }
}

impl AppState {
    /// Handles a request of a client that was shown these questions. Fails with an error code of the
    /// protocol.
    pub(super) async fn dispatch(
        &self,
        request: Request,
        shown: &ShownQuestions,
    ) -> Result<Reply, Error> {
        match request {
            Request::Create(create) => self.create(create).await,
            Request::List { workspace, limit } => self.list(workspace.as_deref(), limit).await,
            Request::Get(session) => Ok(self.get(&session).await?.into()),
            Request::Resume(session) => self.resume(session, true).await,
            Request::Subscribe(session) => self.resume(session, false).await,
            Request::Head(session) => self.newest(session).await,
            Request::Fork { session, at, name, model } => {
                self.fork(session, at, (name, model)).await
            }
            Request::Delete(session) => self.delete(session).await,
            Request::Branches(session) => self.branches(&session).await,
            Request::Message(message) => self.message(message).await,
            Request::Abort(session) => self.abort(&session).await,
            Request::Respond { session, call, response } => {
                let target =
                    call.as_deref().map_or(AnswerTarget::OnlyShown(shown), AnswerTarget::Named);
                self.respond(session, target, response).await
            }
            Request::AgentStatus(session) => self.agent_status(&session).await,
            Request::Models => Ok(self.models().await.into()),
            Request::SwitchModel { session, model } => self.switch(&session, &model).await,
            Request::Context(session) => self.context(&session).await,
            Request::Snapshot { session, whole } => self.snapshot(&session, whole).await,
            Request::ContextSpace { session, expected } => self.space(&session, expected).await,
            Request::Compact { session, summary } => self.compact(&session, summary).await,
            Request::PreviewCompaction(session) => self.preview(&session).await,
            Request::Clear(session) => self.clear(&session).await,
            Request::Events(query) => self.events(&query).await,
            Request::EventsBackwards(query) => self.backwards(&query).await,
            Request::Sync(query) => self.sync(&query).await,
            Request::Unsubscribe(session) => Ok(Reply {
                result: json!({ "success": true }),
                then: FollowUp::Unsubscribe(session),
            }),
            Request::Ping => {
                Ok(json!({ "pong": true, "timestamp": self.now().to_rfc3339_millis() }).into())
            }
            Request::Info => self.info().await,
            Request::Ancestors(query) => self.ancestors(&query).await,
            Request::Tree { session, messages } => self.tree(session, messages).await,
            Request::ListFolder { path, hidden } => self.folder(path.as_deref(), hidden).await,
            Request::Home => Ok(self.home().await.into()),
            Request::MakeFolder { path, parents } => self.make_folder(&path, parents).await,
            Request::StaticReply(reply) => Ok(reply.into()),
        }
    }

    async fn info(&self) -> Result<Reply, Error> {
        let recent = self.services.sessions.recent(None, RECENT_LIMIT).await.map_err(rpc_error)?;
        Ok(json!({
            "name": "quintet",
            "version": env!("CARGO_PKG_VERSION"),
            "uptime": self.now().since(self.started).as_secs(),
            "activeSessions": recent.iter().filter(|summary| summary.open).count(),
            "defaultModel": self.settings.default_model,
        })
        .into())
    }

    pub(super) async fn view(&self, session: &SessionId) -> Result<Arc<State>, Error> {
        self.services.sessions.view(session).await.map_err(rpc_error)
    }

    pub(super) async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        let follow =
            self.services.sessions.follow(session, Cursor::START).await.map_err(rpc_error)?;
        Ok(follow.head())
    }

    /// The session's events.
    pub(super) async fn history(&self, session: &SessionId) -> Result<History<'_>, Error> {
        let summary = self.services.sessions.summary(session).await.map_err(rpc_error)?;
        let workspace = summary.workspace.to_string_lossy().into_owned();
        let default = self.settings.default_model.clone();
        let current = summary.model.as_ref().map_or_else(|| default.clone(), ToString::to_string);
        let (sessions, models) = (&*self.services.sessions, (default, current));
        let (session, has_turns) = (session.clone(), summary.last_turn.is_some());
        Ok(History { sessions, session, workspace, models, has_turns })
    }
}

/// Subscribes to a session, beginning with the events that a command caused.
pub(super) fn subscribe(receipt: &Receipt) -> FollowUp {
    match receipt.records.first() {
        Some(first) => FollowUp::Subscribe(receipt.session.clone(), first.seq - 1),
        None => FollowUp::Nothing,
    }
}

/// Maps an error of the core to an error response.
pub(super) fn rpc_error(error: port::Error) -> Error {
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
