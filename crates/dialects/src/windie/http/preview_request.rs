//! The body of a request for a preview.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::Role;
use serde_json::{Value, json};

use super::reply::Reply;
use super::{Caller, read_query};
use crate::windie::agent::turn_setup::Agent;
use crate::windie::auth::User;
use crate::windie::encode::prompt_disclosure::between;
use crate::windie::fields::Object;
use crate::windie::wire::agent_definition::{Definition, PATH_LIMIT};
use crate::windie::wire::query::Query;
use crate::windie::wire::user_settings::{Interaction, Settings};

const USER_LIMIT: usize = 256;
const MODEL_LIMIT: usize = 256;
const PROVIDER_LIMIT: usize = 128;
const QUERY_LIMIT: usize = 32_768;
const NAME_LIMIT: usize = 1024;
/// The most messages, and the most characters of one.
const MESSAGES_LIMIT: usize = 200;
const MESSAGE_LIMIT: usize = 400_000;

/// Settings of a request that override those of the user.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    user: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    interaction: Option<Interaction>,
}

impl Overrides {
    fn of(fields: &Object<'_>) -> Self {
        Self {
            interaction: fields.field("interaction_mode").choice(&Interaction::WORDS),
            user: fields.text("user_id", 1..=USER_LIMIT),
            model: fields.text("model_id", 1..=MODEL_LIMIT),
            provider: fields.text("model_provider", 1..=PROVIDER_LIMIT),
        }
    }

    /// The user whose settings are used. An authenticated client can only name its own user.
    pub(super) fn user(&self, user: Option<&User>) -> Result<Option<String>, Reply> {
        match (user, &self.user) {
            (Some(user), Some(claimed)) if *claimed != user.id => {
                Err(Reply::new(403, "user_id does not match the authenticated install"))
            }
            (Some(user), _) => Ok(Some(user.id.clone())),
            (None, claimed) => Ok(claimed.clone()),
        }
    }

    /// The user's settings with the overrides.
    pub(super) async fn settings(&self, by: &Caller) -> Result<Settings, Reply> {
        let mut settings = match self.user(by.user.as_ref())? {
            Some(user) => by.app.settings_of(&user).await?,
            None => Settings::default(),
        };
        settings.selected_model_id = self.model.clone().or(settings.selected_model_id);
        settings.model_provider = self.provider.clone().or(settings.model_provider);
        settings.interaction_mode = self.interaction.unwrap_or(settings.interaction_mode);
        Ok(settings)
    }
}

impl<S: Sync> FromRequestParts<S> for Overrides {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Reply> {
        Ok(read_query(parts.uri.query(), Self::of)?)
    }
}

/// The query and the agent of a preview.
#[derive(Debug)]
pub(super) struct PreviewRequest {
    pub(super) overrides: Overrides,
    pub(super) agent: Agent,
    /// The query; its text is empty if there is none.
    pub(super) query: Query,
    /// The earlier messages.
    pub(super) before: Vec<ImportedMessage>,
    pub(super) include_tools: bool,
    raw: Option<String>,
}

impl PreviewRequest {
    /// A request without a query.
    pub(super) fn alone(overrides: Overrides) -> Self {
        let (agent, query, before) = Default::default();
        Self { overrides, agent, query, before, include_tools: true, raw: None }
    }

    pub(super) fn of(body: &Object<'_>) -> Self {
        let mut request = Self::alone(Overrides::of(body));
        request.include_tools = body.not_null("include_tools").flag().unwrap_or(true);
        request.query.workspace = body.text("workspace_path", 0..=PATH_LIMIT);
        request.raw = body.text("user_query_raw", 0..=QUERY_LIMIT);
        request.query.conversation =
            body.text("conversation_ref", 0..=NAME_LIMIT).unwrap_or_default();
        if let Some(definition) = body.object("agent_definition") {
            request.agent = Agent::new(Definition::of(&definition));
        }
        request.set_messages(body.objects("messages", MESSAGES_LIMIT, message));
        request
    }

    /// Sets the messages: the last one is the query, if it is the user's.
    fn set_messages(&mut self, mut messages: Vec<(Role, String)>) {
        let content = messages.pop_if(|(role, _)| *role == Role::User).map(|(_, text)| text);
        let within = content.as_deref().and_then(|text| between(text, "user_query"));
        let text = self.raw.clone().or(within.map(String::from)).or(content.clone());
        self.query.text = text.unwrap_or_default().trim().to_owned();
        self.query.content = content.filter(|text| !text.trim().is_empty());
        let imported = |(role, text)| ImportedMessage::text(role, text);
        self.before = messages.into_iter().map(imported).collect();
    }

    /// The message with which a client would send the query.
    pub(super) fn message(&self) -> Value {
        let mut payload = json!({ "text": self.query.text });
        if !self.query.conversation.is_empty() {
            payload["conversation_ref"] = json!(self.query.conversation);
        }
        if let Some(workspace) = &self.query.workspace {
            payload["workspace_path"] = json!(workspace);
        }
        json!({ "type": "query", "payload": payload })
    }
}

fn message(message: &Object<'_>) -> (Role, String) {
    let roles = [
        ("user", Role::User),
        ("assistant", Role::Assistant),
        ("system", Role::System),
        ("tool", Role::Tool),
    ];
    let role = message.needed("role").choice(&roles);
    (role.unwrap_or(Role::User), message.needed_text("content", 0..=MESSAGE_LIMIT))
}
