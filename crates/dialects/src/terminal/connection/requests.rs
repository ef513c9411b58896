//! Handles decoded requests.

use quintet_kernel::command::{Approve, Command, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, Setup, TurnOptions};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port;
use quintet_kernel::session::APPROVAL_TIMED_OUT;
use quintet_kernel::tool::Ending;
use quintet_kernel::{ApprovalId, CallId, Refusal, SessionId, State, TurnId};
use serde_json::{Value, json};

use super::super::decode::{Request, rpc_error, unknown_execution, unknown_query};
use super::super::{shape, wire};
use super::Connection;
use crate::jsonrpc::Error;

/// The most open queries of one connection.
const QUERIES_LIMIT: usize = 3;
/// The capabilities of the server.
const CAPABILITIES: [&str; 10] = [
    "streaming",
    "token_batching",
    "blocks",
    "tool_execution",
    "tool_approval",
    "context_aware",
    "session_persistence",
    "session_resume",
    "suggestions",
    "prompts",
];

/// The result of a request.
type Outcome = Result<Value, Error>;

impl Connection {
    pub(super) async fn dispatch(&mut self, request: Request) -> Outcome {
        match request {
            Request::Initialize => Ok(self.initialize_result().await),
            Request::Query { message, options, stream } => {
                self.context_changed();
                self.query(message, options, stream).await
            }
            Request::Cancel(turn) => self.cancel(turn).await,
            Request::Resume(turn) => self.resume(turn).await,
            Request::Approve(approve) => self.approve(approve).await,
            Request::Update => {
                self.context_changed();
                Ok(json!({ "updated": true }))
            }
            Request::Save { path, history, blocks } => self.save(path, history, blocks).await,
            Request::LoadFile(path) => self.load_file(path).await,
            Request::LoadSession { session, received } => self.load(session, received).await,
            Request::List(limit) => self.list(limit).await,
            Request::Export { session, format } => self.export(session, format).await,
            Request::Delete(session) => self.delete(session).await,
            Request::Prompts => Ok(self.list_prompts()),
        }
    }

    async fn initialize_result(&mut self) -> Value {
        let default = &self.app.settings.default_model;
        let models = self.app.models.usable().await;
        let mut models: Vec<Value> =
            models.iter().map(|listed| shape::model(listed, default)).collect();
        if !models.iter().any(|model| model["default"] == true) {
            let name = default.to_string();
            models.insert(
                0,
                json!({ "name": name, "type": "chat", "loaded": true, "default": true }),
            );
        }
        json!({
            "status": "ready",
            "protocol_version": wire::VERSION,
            "server_info": { "name": "quintet", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": CAPABILITIES,
            "models": models,
        })
    }

    async fn query(&mut self, message: String, options: TurnOptions, stream: bool) -> Outcome {
        if self.open_queries() >= QUERIES_LIMIT {
            let message = format!("Permission denied: {QUERIES_LIMIT} queries are already open");
            let data = json!({ "reason": "too_many_queries", "limit": QUERIES_LIMIT });
            return Err(Error::new(wire::PERMISSION_DENIED, message).with(data));
        }
        let session = self.conversation().await?;
        let context = self.link.context.for_model(self.app.settings.context_tokens);
        let changed = context.clone().filter(|new| self.last_context.as_ref() != Some(new));
        let (content, files) = self.message_content(&session, message).await?;
        let parts = changed.map(Part::Context).into_iter().chain(content).collect();
        let answer_within_ms = self.app.settings.answer_within_ms;
        let options = TurnOptions { answer_within_ms, ..options };
        let setup = Setup { workspace: self.link.context.moved_to(), ..Setup::default() };
        let message = NewMessage {
            files,
            setup,
            ..NewMessage::new(Role::User, parts, TurnStart::Queued, options)
        };
        let receipt = self
            .submit(&session, Command::AddMessage(Box::new(message)))
            .await
            .map_err(|e| rpc_error(&e))?;
        self.last_context = context.or(self.last_context.take());
        self.link.context.clear_moved();
        let missing =
            || Error::new(wire::AGENT_ERROR, "the session added no message for the query");
        let added = receipt.message().ok_or_else(missing)?;
        if let Some(entry) = self.followed.last_mut() {
            entry.link.track_query(added.turn, stream);
        }
        Ok(json!({
            "query_id": wire::query_id(added.turn),
            "status": "processing",
            "queued": !added.started,
            "session_id": session.as_str(),
        }))
    }

    async fn cancel(&mut self, turn: TurnId) -> Outcome {
        let query = wire::query_id(&turn);
        let session = self.session_of(&turn).ok_or_else(|| unknown_query(&query))?;
        let command = Command::CancelTurn { turn, reason: None };
        let receipt = self.submit_for_query(&session, command, &query).await?;
        Ok(json!({ "cancelled": !receipt.records.is_empty(), "query_id": query }))
    }

    /// Continues a turn that waits after a crash, or retries a turn.
    async fn resume(&mut self, turn: TurnId) -> Outcome {
        let query = wire::query_id(&turn);
        let session = self.session_of(&turn).ok_or_else(|| unknown_query(&query))?;
        self.submit_for_query(&session, Command::StartTurn { turn }, &query).await?;
        Ok(json!({ "query_id": query, "status": "processing" }))
    }

    async fn submit_for_query(
        &mut self,
        session: &SessionId,
        command: Command,
        query: &str,
    ) -> Result<port::Receipt, Error> {
        self.submit(session, command).await.map_err(|error| match error {
            port::Error::Refused(Refusal::UnknownTurn(_)) => unknown_query(query),
            error => rpc_error(&error),
        })
    }

    async fn approve(&mut self, approve: Approve) -> Outcome {
        let answer = approve.answer;
        let call = match &approve.question {
            ApprovalId::Call(_) | ApprovalId::Question(_) => {
                CallId::named(approve.question.to_string())
            }
            ApprovalId::Turn(turn) => return Err(unknown_execution(turn.as_str())),
        };
        let execution = wire::execution_id(&call);
        let asking = self.followed.iter().rev().find(|entry| entry.link.awaits_approval(&call));
        let entry = asking.or(self.followed.last());
        let session = entry.map(|entry| entry.session.clone());
        let session = session.ok_or_else(|| unknown_execution(&execution))?;
        match self.submit(&session, Command::Approve(approve)).await {
            Ok(_) => {
                let status = match answer {
                    ApprovalDecision::Allow => "approved",
                    ApprovalDecision::Deny => "rejected",
                };
                Ok(json!({ "status": status, "execution_id": execution }))
            }
            Err(port::Error::Refused(
                Refusal::NothingPending(_) | Refusal::NotPending(_) | Refusal::QuestionClosed(_),
            )) => {
                let state = self.view(&session).await?;
                Err(not_pending(&state, &call))
            }
            Err(error) => Err(rpc_error(&error)),
        }
    }

    /// The session of a turn; the current one if the turn is not known.
    fn session_of(&self, turn: &TurnId) -> Option<SessionId> {
        let known = self.followed.iter().find(|entry| entry.link.knows(turn));
        known.or(self.followed.last()).map(|entry| entry.session.clone())
    }

    pub(super) async fn submit(
        &mut self,
        session: &SessionId,
        command: Command,
    ) -> Result<port::Receipt, port::Error> {
        self.app.services.sessions.submit(session, command).await
    }
}

/// The error for an approval of a call that does not wait for one.
fn not_pending(state: &State, call: &CallId) -> Error {
    let execution = wire::execution_id(call);
    let result = state.messages.iter().find(|message| message.call.as_ref() == Some(call));
    let Some(result) = result else { return unknown_execution(&execution) };
    let (code, why) = match result.ending {
        Some(Ending::Cancelled | Ending::Interrupted) => {
            (wire::CANCELLED, "its query was cancelled".to_owned())
        }
        Some(Ending::Denied) if result.text().ends_with(APPROVAL_TIMED_OUT) => {
            (wire::TIMEOUT, APPROVAL_TIMED_OUT.to_owned())
        }
        Some(Ending::Denied) => (wire::PERMISSION_DENIED, "it was already denied".to_owned()),
        _ => (wire::TOOL_ERROR, "it has already ended".to_owned()),
    };
    Error::new(code, format!("{execution}: {why}")).with(json!({ "execution_id": execution }))
}
