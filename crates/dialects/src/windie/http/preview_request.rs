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
use crate::windie::wire::agent_definition::{Definition, LONGEST_PATH};
use crate::windie::wire::query::Query;
use crate::windie::wire::user_settings::{Interaction, Settings};

const LONGEST_USER: usize = 256;
const LONGEST_MODEL: usize = 256;
const LONGEST_PROVIDER: usize = 128;
const LONGEST_QUERY: usize = 32_768;
const LONGEST_NAME: usize = 1024;
/// The most messages, and the most that one may hold.
const MOST_MESSAGES: usize = 200;
const LONGEST_MESSAGE: usize = 400_000;

/// What is to count instead of what the user set.
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
            user: fields.text("user_id", 1..=LONGEST_USER),
            model: fields.text("model_id", 1..=LONGEST_MODEL),
            provider: fields.text("model_provider", 1..=LONGEST_PROVIDER),
        }
    }

    /// The user whose settings are meant. An authenticated client can only mean its own.
    pub(super) fn whose(&self, user: Option<&User>) -> Result<Option<String>, Reply> {
        match (user, &self.user) {
            (Some(user), Some(claimed)) if *claimed != user.id => {
                Err(Reply::new(403, "user_id does not match the authenticated install"))
            }
            (Some(user), _) => Ok(Some(user.id.clone())),
            (None, claimed) => Ok(claimed.clone()),
        }
    }

    /// What the user set, and what is to count instead.
    pub(super) async fn settings(&self, by: &Caller) -> Result<Settings, Reply> {
        let mut settings = match self.whose(by.user.as_ref())? {
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

/// What would be asked.
#[derive(Debug)]
pub(super) struct PreviewRequest {
    pub(super) overrides: Overrides,
    pub(super) agent: Agent,
    /// The question; its text is empty if there is none.
    pub(super) query: Query,
    /// What was said before it.
    pub(super) before: Vec<ImportedMessage>,
    pub(super) include_tools: bool,
    raw: Option<String>,
}

impl PreviewRequest {
    /// No question at all.
    pub(super) fn alone(overrides: Overrides) -> Self {
        let (agent, query, before) = Default::default();
        Self { overrides, agent, query, before, include_tools: true, raw: None }
    }

    pub(super) fn of(body: &Object<'_>) -> Self {
        let mut asked = Self::alone(Overrides::of(body));
        asked.include_tools = body.not_null("include_tools").flag().unwrap_or(true);
        asked.query.workspace = body.text("workspace_path", 0..=LONGEST_PATH);
        asked.raw = body.text("user_query_raw", 0..=LONGEST_QUERY);
        asked.query.conversation =
            body.text("conversation_ref", 0..=LONGEST_NAME).unwrap_or_default();
        if let Some(definition) = body.object("agent_definition") {
            asked.agent = Agent::new(Definition::of(&definition));
        }
        asked.ask(body.objects("messages", MOST_MESSAGES, message));
        asked
    }

    /// The last message is the question, if the user said it; all others were said before.
    fn ask(&mut self, mut messages: Vec<(Role, String)>) {
        let worded = messages.pop_if(|(role, _)| *role == Role::User).map(|(_, text)| text);
        let within = worded.as_deref().and_then(|text| between(text, "user_query"));
        let said = self.raw.clone().or(within.map(String::from)).or(worded.clone());
        self.query.text = said.unwrap_or_default().trim().to_owned();
        self.query.content = worded.filter(|text| !text.trim().is_empty());
        let recalled = |(role, text)| ImportedMessage::text(role, text);
        self.before = messages.into_iter().map(recalled).collect();
    }

    /// The message that a client would ask with.
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
    (role.unwrap_or(Role::User), message.needed_text("content", 0..=LONGEST_MESSAGE))
}
