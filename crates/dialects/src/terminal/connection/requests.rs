//! Carries out requests.

use quintet_kernel::command::{Approve, Command, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, Setup, TurnOptions};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port;
use quintet_kernel::session::APPROVAL_TIMED_OUT;
use quintet_kernel::tool::Ending;
use quintet_kernel::{ApprovalId, CallId, Refusal, SessionId, State, TurnId};
use serde_json::{Value, json};

use super::super::decode::{Step, refusal, unknown_execution, unknown_query};
use super::super::{shape, wire};
use super::Connection;
use crate::jsonrpc::Error;

/// Queries of one connection at the same time.
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
    pub(super) async fn carry_out(&mut self, step: Step) -> Outcome {
        match step {
            Step::Initialize => Ok(self.initialize_result().await),
            Step::Query { message, options, stream } => {
                self.context_changed();
                self.query(message, options, stream).await
            }
            Step::Cancel(turn) => self.cancel(turn).await,
            Step::Resume(turn) => self.resume(turn).await,
            Step::Approve(approve) => self.approve(approve).await,
            Step::Update => {
                self.context_changed();
                Ok(json!({ "updated": true }))
            }
            Step::Save { path, history, blocks } => self.save(path, history, blocks).await,
            Step::LoadFile(path) => self.load_file(path).await,
            Step::LoadSession { session, had } => self.load(session, had).await,
            Step::List(limit) => self.list(limit).await,
            Step::Export { session, format } => self.export(session, format).await,
            Step::Delete(session) => self.delete(session).await,
            Step::Prompts => Ok(self.list_prompts()),
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
            let message =
                format!("Permission denied: {QUERIES_LIMIT} queries are being answered already");
            let data = json!({ "reason": "too_many_queries", "limit": QUERIES_LIMIT });
            return Err(Error::new(wire::PERMISSION_DENIED, message).with(data));
        }
        let session = self.conversation().await?;
        let told = self.link.context.for_model(self.app.settings.context_tokens);
        let news = told.clone().filter(|told| self.last_context.as_ref() != Some(told));
        let (said, files) = self.filled(&session, message).await?;
        let parts = news.map(Part::Context).into_iter().chain(said).collect();
        let answer_within_ms = self.app.settings.answer_within_ms;
        let options = TurnOptions { answer_within_ms, ..options };
        let setup = Setup { workspace: self.link.context.moved_to(), ..Setup::default() };
        let say = NewMessage {
            files,
            setup,
            ..NewMessage::new(Role::User, parts, TurnStart::Queued, options)
        };
        let receipt = self
            .submit(&session, Command::AddMessage(Box::new(say)))
            .await
            .map_err(|e| refusal(&e))?;
        self.last_context = told.or(self.last_context.take());
        self.link.context.settle();
        let lost = || Error::new(wire::AGENT_ERROR, "the session added no message for the query");
        let added = receipt.message().ok_or_else(lost)?;
        if let Some(watch) = self.followed.last_mut() {
            watch.link.track_query(added.turn, stream);
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
        let receipt = self.of_query(&session, command, &query).await?;
        Ok(json!({ "cancelled": !receipt.records.is_empty(), "query_id": query }))
    }

    /// Lets a turn go on that waits for a word after a crash, or tries one again.
    async fn resume(&mut self, turn: TurnId) -> Outcome {
        let query = wire::query_id(&turn);
        let session = self.session_of(&turn).ok_or_else(|| unknown_query(&query))?;
        self.of_query(&session, Command::StartTurn { turn }, &query).await?;
        Ok(json!({ "query_id": query, "status": "processing" }))
    }

    async fn of_query(
        &mut self,
        session: &SessionId,
        command: Command,
        query: &str,
    ) -> Result<port::Receipt, Error> {
        self.submit(session, command).await.map_err(|error| match error {
            port::Error::Refused(Refusal::UnknownTurn(_)) => unknown_query(query),
            error => refusal(&error),
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
        let asks = self.followed.iter().rev().find(|watch| watch.link.awaits_approval(&call));
        let watch = asks.or(self.followed.last());
        let session = watch.map(|watch| watch.session.clone());
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
            Err(error) => Err(refusal(&error)),
        }
    }

    /// The session that a turn belongs to, as far as this client knows.
    fn session_of(&self, turn: &TurnId) -> Option<SessionId> {
        let known = self.followed.iter().find(|watch| watch.link.knows(turn));
        known.or(self.followed.last()).map(|watch| watch.session.clone())
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
        Some(Ending::Denied) => (wire::PERMISSION_DENIED, "it was refused already".to_owned()),
        _ => (wire::TOOL_ERROR, "it is over already".to_owned()),
    };
    Error::new(code, format!("{execution}: {why}")).with(json!({ "execution_id": execution }))
}
