//! Requests about sessions: create, list, show, fork, delete, switch the model.

use std::collections::BTreeMap;
use std::path::Path;

use quintet_kernel::SessionId;
use quintet_kernel::command::Command;
use quintet_kernel::event::NewSession;
use quintet_kernel::model::ModelRef;
use serde_json::{Value, json};

use super::dispatch::{FollowUp, Reply, rpc_error, subscribe};
use super::event_id::{EventRef, event_id};
use super::request::CreateSession;
use super::serve::AppState;
use super::{question, shape};
use crate::jsonrpc::{Error, INVALID_PARAMS};

impl AppState {
    pub(super) async fn create(&self, params: CreateSession) -> Result<Reply, Error> {
        let CreateSession { workspace, model, system_prompt, title } = params;
        let model = self.model_or_default(model.as_deref()).await;
        let labels = BTreeMap::from_iter(title.map(|title| ("title".to_owned(), title)));
        let (workspace, toolset) = (workspace.into(), Some(Box::new(question::toolset())));
        let origin = NewSession { workspace, system_prompt, model, labels, toolset };
        let receipt = self.services.sessions.create(origin).await.map_err(rpc_error)?;
        let summary = self.services.sessions.summary(&receipt.session).await.map_err(rpc_error)?;
        let result = shape::session(&summary, &self.settings.default_model);
        let from = receipt.records.first().map_or(0, |first| first.seq - 1);
        Ok(Reply { result, then: FollowUp::Bind(receipt.session, from) })
    }

    pub(super) async fn list(&self, workspace: Option<&str>, limit: usize) -> Result<Reply, Error> {
        let workspace = workspace.map(Path::new);
        let summaries = self.services.sessions.recent(workspace, limit).await.map_err(rpc_error)?;
        let show = |summary| shape::session(summary, &self.settings.default_model);
        Ok(json!({ "sessions": summaries.iter().map(show).collect::<Vec<_>>() }).into())
    }

    pub(super) async fn get(&self, session: &SessionId) -> Result<Value, Error> {
        let state = self.view(session).await?;
        let shown = shape::whole_session(&state);
        // The original server has these members at the top level, the specification under `session`.
        let mut result = shown.clone();
        result["session"] = shown;
        Ok(result)
    }

    pub(super) async fn resume(&self, session: SessionId, binds: bool) -> Result<Reply, Error> {
        let summary = self.services.sessions.summary(&session).await.map_err(rpc_error)?;
        let result = shape::session(&summary, &self.settings.default_model);
        let head = self.head(&session).await?;
        let then =
            if binds { FollowUp::Bind(session, head) } else { FollowUp::Subscribe(session, head) };
        Ok(Reply { result, then })
    }

    pub(super) async fn fork(
        &self,
        session: SessionId,
        at: Option<EventRef>,
        changes: (Option<String>, Option<String>),
    ) -> Result<Reply, Error> {
        let (name, model) = changes;
        let at = match at {
            Some(event) => Some(self.sequence_in(&session, &event).await?),
            None => None,
        };
        let model = self.model_or_default(model.as_deref()).await;
        let receipt = self.services.sessions.fork(&session, at).await.map_err(rpc_error)?;
        let root = receipt.records.first().map_or(0, |record| record.seq);
        let child = &receipt.session;
        if let Some(title) = name {
            let label = Command::SetLabel { key: "title".into(), value: Some(title) };
            self.services.sessions.submit(child, label).await.map_err(rpc_error)?;
        }
        if let Some(model) = model {
            let switch = Command::SwitchModel(model);
            self.services.sessions.submit(child, switch).await.map_err(rpc_error)?;
        }
        let result = json!({
            "newSessionId": child.as_str(),
            "sessionId": child.as_str(),
            "rootEventId": event_id(child, root),
            "rootSequence": root,
            "forkedFromEventId": event_id(&session, root.saturating_sub(1)),
            "forkedFromSessionId": session.as_str(),
        });
        Ok(Reply { result, then: subscribe(&receipt) })
    }

    pub(super) async fn delete(&self, session: SessionId) -> Result<Reply, Error> {
        self.services.sessions.remove(&session).await.map_err(rpc_error)?;
        let result = json!({ "success": true, "deleted": true });
        Ok(Reply { result, then: FollowUp::Unsubscribe(session) })
    }

    pub(super) async fn switch(&self, session: &SessionId, model: &str) -> Result<Reply, Error> {
        let summary = self.services.sessions.summary(session).await.map_err(rpc_error)?;
        let before = summary.model.map(|model| model.to_string());
        let before = before.unwrap_or_else(|| self.settings.default_model.clone());
        let model = self.model(Some(model)).await?;
        let Some(model) = model else { return Err(unknown_model("")) };
        let switched = model.to_string();
        let command = Command::SwitchModel(model);
        self.services.sessions.submit(session, command).await.map_err(rpc_error)?;
        Ok(json!({ "success": true, "previousModel": before, "newModel": switched }).into())
    }

    pub(super) async fn models(&self) -> Value {
        let models = self.services.models.list().await;
        json!({ "models": models.iter().map(shape::model).collect::<Vec<_>>() })
    }

    /// The model for a new session. Clients may have the name of a model built in that is not configured
    /// here; then the default model is used.
    async fn model_or_default(&self, name: Option<&str>) -> Option<ModelRef> {
        self.model(name).await.unwrap_or_else(|error| {
            tracing::warn!("{}; using the default model", error.message);
            None
        })
    }

    /// Finds a model by `provider/model`, or by `model` alone. Fails if there is none.
    pub(super) async fn model(&self, name: Option<&str>) -> Result<Option<ModelRef>, Error> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let full = ModelRef::parse(name);
        // A full name does not need the providers' lists, which may have to be fetched.
        if full.as_ref().is_some_and(|full| self.settings.providers.contains(&full.provider)) {
            return Ok(full);
        }
        let listed = self.services.models.list().await;
        let named =
            listed.iter().find(|one| one.model.to_string() == name || one.model.model == name);
        match named.map(|one| one.model.clone()).or(full) {
            Some(model) => Ok(Some(model)),
            None => Err(unknown_model(name)),
        }
    }
}

fn unknown_model(name: &str) -> Error {
    Error::new(INVALID_PARAMS, format!("Unknown model: {name}"))
}
