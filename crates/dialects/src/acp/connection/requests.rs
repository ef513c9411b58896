//! Handles decoded requests.

use std::path::Path;

use quintet_kernel::command::Command;
use quintet_kernel::message::MediaKind;
use quintet_kernel::port::Error as PortError;
use quintet_kernel::{Refusal, SessionId, SessionSummary};
use serde_json::{Value, json};

use super::super::decode::{Choice, Client, Request};
use super::super::settings::{EFFORT_LABEL, MODE_LABEL, Mode};
use super::super::wire;
use super::open::OpenKind;
use super::prompts::prompt_result;
use super::{Connection, Gone, Messages};
use crate::jsonrpc::{self, Error, Id};

/// Sessions per page of a list.
const PAGE_SESSIONS: usize = 50;
/// The most sessions that all pages of a list have.
const LIST_LIMIT: usize = 1000;
/// The label of subagents' sessions.
const SUBAGENT_LABEL: &str = "subagent_depth";
/// The only authentication method: a provider's key that the daemon has.
const AUTH_METHOD: &str = "provider-key";

/// The result of a request.
pub(super) type Outcome = Result<Value, Error>;

impl Connection {
    /// Handles a request. Returns its result, or `None` if the response is sent later or was sent already.
    pub(super) async fn dispatch(
        &mut self,
        id: Option<&Id>,
        request: Request,
    ) -> Result<Option<Outcome>, Gone> {
        Ok(Some(match request {
            Request::Initialize => Ok(self.initialize().await),
            Request::Authenticate { method } => self.authenticate(&method).await,
            Request::New(params) => return self.new_session(id, params).await,
            Request::Load { session, params } => {
                return self.open_session(id, &session, params, OpenKind::Loaded).await;
            }
            Request::Resume { session, params } => {
                return self.open_session(id, &session, params, OpenKind::Resumed).await;
            }
            Request::List { cwd, offset } => self.list(cwd.as_deref(), offset).await,
            Request::Close(session) => return self.close(id, &session).await,
            Request::Delete(session) => return self.delete(id, &session).await,
            Request::Prompt { session, blocks } => {
                return Ok(self.prompt(id, &session, blocks).await);
            }
            Request::Cancel(session) => {
                let messages = self.cancel(&session, None).await;
                self.queue.send(&messages).await?;
                Ok(Value::Null)
            }
            Request::SetMode { session, mode } => self.set_mode(&session, mode).await,
            Request::SetOption { session, choice } => self.set_option(&session, choice).await,
            Request::Import(import) => self.import(*import).await,
            Request::CancelPrompt(request) => {
                if let Some(session) = self.prompt_session(&request) {
                    let messages = self.cancel(&session, Some(&request)).await;
                    self.queue.send(&messages).await?;
                }
                Ok(Value::Null)
            }
        }))
    }

    async fn initialize(&self) -> Value {
        let models = &self.app.services.models;
        let inputs = models.profile(&self.app.default_model).map(|profile| profile.inputs);
        let takes = |kind| inputs.as_ref().is_some_and(|inputs| inputs.contains(&kind));
        let methods = if self.has_models().await { json!([]) } else { json!([auth_method()]) };
        json!({
            "protocolVersion": wire::VERSION,
            "agentInfo": {
                "name": "quintet", "title": "Quintet", "version": env!("CARGO_PKG_VERSION"),
            },
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {
                    "image": takes(MediaKind::Image),
                    "audio": takes(MediaKind::Audio),
                    "embeddedContext": true,
                },
                "mcpCapabilities": { "http": true, "sse": false },
                "sessionCapabilities": { "list": {}, "resume": {}, "close": {}, "delete": {} },
            },
            "authMethods": methods,
        })
    }

    /// False if it is known that no model is usable.
    async fn has_models(&self) -> bool {
        self.app.models.if_known().await.is_none_or(|models| !models.is_empty())
    }

    async fn authenticate(&self, method: &str) -> Outcome {
        match (self.has_models().await, method) {
            (true, AUTH_METHOD) => Ok(json!({})),
            (true, _) => Err(Error::no_method("authenticate")),
            (false, AUTH_METHOD) => {
                let message = "no provider has a key yet: run `quintet keys set PROVIDER`";
                Err(Error::new(wire::AUTH_REQUIRED, message))
            }
            (false, _) => Err(Error::field("methodId", "one of authMethods")),
        }
    }

    async fn list(&self, cwd: Option<&Path>, offset: usize) -> Outcome {
        let summaries = self.app.services.sessions.recent(cwd, LIST_LIMIT).await;
        let mut summaries = summaries.map_err(|error| rpc_error(&error))?;
        summaries.retain(|summary| !summary.labels.contains_key(SUBAGENT_LABEL));
        let page: Vec<_> = summaries.iter().skip(offset).take(PAGE_SESSIONS).map(listed).collect();
        let next = offset.saturating_add(PAGE_SESSIONS);
        let mut answer = json!({ "sessions": page });
        if next < summaries.len() {
            answer["nextCursor"] = next.to_string().into();
        }
        Ok(answer)
    }

    async fn close(
        &mut self,
        id: Option<&Id>,
        session: &SessionId,
    ) -> Result<Option<Outcome>, Gone> {
        let which = match self.require_open(session) {
            Ok(which) => which,
            Err(error) => return Ok(Some(Err(error))),
        };
        let messages = self.cancel(session, None).await;
        self.queue.send(&messages).await?;
        // The response must come after the cancellations.
        while self.tasks.join_next().await.is_some() {}
        let closed = self.sessions.remove(which);
        self.app.services.tool_servers.join(session, &closed.cwd, Vec::new());
        self.files.close(&self.app.services.editors, Some(session));
        self.questions_closed(session);
        self.respond_after_prompts(id, session).await
    }

    async fn delete(&mut self, id: Option<&Id>, name: &str) -> Result<Option<Outcome>, Gone> {
        let Some(session) = SessionId::parse(name) else { return Ok(Some(Ok(json!({})))) };
        match self.app.services.sessions.remove(&session).await {
            Ok(()) | Err(PortError::NotFound(_)) => {}
            Err(error) => return Ok(Some(Err(rpc_error(&error)))),
        }
        if let Some(which) = self.position(&session) {
            let closed = self.sessions.remove(which);
            self.app.services.tool_servers.join(&session, &closed.cwd, Vec::new());
        }
        self.files.close(&self.app.services.editors, Some(&session));
        self.questions_closed(&session);
        self.respond_after_prompts(id, &session).await
    }

    /// Responds to the prompts of a session that was closed or deleted, and then to the request that did
    /// it.
    async fn respond_after_prompts(
        &mut self,
        id: Option<&Id>,
        session: &SessionId,
    ) -> Result<Option<Outcome>, Gone> {
        let of_session = |open: &super::OpenPrompt| open.session == *session;
        let mut messages = self.respond_to_prompts(of_session, &Ok(prompt_result("cancelled")));
        messages.extend(id.map(|id| jsonrpc::response(id, &Ok(json!({})))));
        self.queue.send(&messages).await?;
        Ok(None)
    }

    async fn set_mode(&mut self, session: &SessionId, mode: Mode) -> Outcome {
        self.require_open(session)?;
        self.label(session, MODE_LABEL, mode.id()).await?;
        Ok(json!({}))
    }

    async fn set_option(&mut self, session: &SessionId, choice: Choice) -> Outcome {
        let which = self.require_open(session)?;
        match &choice {
            Choice::Mode(mode) => self.label(session, MODE_LABEL, mode.id()).await?,
            Choice::Effort(effort) => self.label(session, EFFORT_LABEL, effort.name()).await?,
            Choice::Model(model) => {
                let command = Command::SwitchModel(model.clone());
                let switched = self.app.services.sessions.submit(session, command).await;
                switched.map_err(|error| rpc_error(&error))?;
            }
        }
        let settings = &mut self.sessions[which].encoder.settings;
        match choice {
            Choice::Mode(mode) => settings.mode = mode,
            Choice::Effort(effort) => settings.effort = Some(effort),
            Choice::Model(model) => settings.model = model,
        }
        let models = self.app.models.usable().await;
        Ok(json!({ "configOptions": self.sessions[which].encoder.settings.options(&models) }))
    }

    async fn label(&self, session: &SessionId, key: &str, value: &str) -> Result<(), Error> {
        let command = Command::SetLabel { key: key.to_owned(), value: Some(value.to_owned()) };
        let labelled = self.app.services.sessions.submit(session, command).await;
        labelled.map(|_| ()).map_err(|error| rpc_error(&error))
    }

    /// The updates after the settings of a session changed.
    pub(super) async fn settings_changed(&self, which: usize) -> Messages {
        let encoder = &self.sessions[which].encoder;
        let mode = json!({
            "sessionUpdate": "current_mode_update",
            "currentModeId": encoder.settings.mode.id(),
        });
        let mut updates = vec![mode];
        if !self.client().no_options {
            let options = encoder.settings.options(&self.app.models.usable().await);
            let update =
                json!({ "sessionUpdate": "config_option_update", "configOptions": options });
            updates.push(update);
        }
        updates.iter().map(|update| wire::update(encoder.session(), update)).collect()
    }

    /// The capabilities of the editor.
    pub(super) fn client(&self) -> Client {
        self.link.client.clone().unwrap_or_default()
    }

    /// The index of an open session. Fails if the editor has not opened it.
    pub(super) fn require_open(&self, session: &SessionId) -> Result<usize, Error> {
        self.position(session).ok_or_else(|| wire::not_found(session.as_str()))
    }
}

fn listed(summary: &SessionSummary) -> Value {
    let mut listed = json!({
        "sessionId": summary.id.as_str(),
        "cwd": summary.workspace.to_string_lossy(),
        "updatedAt": summary.updated.to_string(),
    });
    if !summary.title.is_empty() {
        listed["title"] = summary.title.as_str().into();
    }
    listed
}

fn auth_method() -> Value {
    json!({
        "id": AUTH_METHOD,
        "name": "Key of a provider",
        "description": "Run `quintet keys set PROVIDER` in a terminal, then try again",
    })
}

/// Maps an error of the core to an error response.
pub(super) fn rpc_error(error: &PortError) -> Error {
    let message = error.to_string();
    match error {
        PortError::NotFound(session) | PortError::Refused(Refusal::NotBegun(session)) => {
            wire::not_found(session.as_str())
        }
        PortError::Refused(_) => Error::new(jsonrpc::INVALID_PARAMS, message),
        PortError::Ahead(..) | PortError::ReadOnly | PortError::Closing | PortError::Storage(_) => {
            Error::new(jsonrpc::INTERNAL_ERROR, message)
        }
    }
}
