//! What a request for a preview says.

use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::Role;
use serde_json::{Map, Value, json};

use super::fields::Fields;
use super::reply::Reply;
use crate::windie::agent::turn_setup::Agent;
use crate::windie::auth::User;
use crate::windie::encode::prompt_disclosure::between;
use crate::windie::serve::AppState;
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
    pub(super) fn of_query(query: &str) -> Result<Self, Reply> {
        let names = ["user_id", "model_id", "model_provider", "interaction_mode"];
        let mut fields = Fields::of_query(query, &names);
        let overrides = Self::read(&mut fields);
        fields.rest()?;
        Ok(overrides)
    }

    fn read(fields: &mut Fields) -> Self {
        let interaction = fields.maybe_word("interaction_mode", &["chat", "agent"]);
        Self {
            user: fields.maybe_text("user_id", 1..=LONGEST_USER),
            model: fields.maybe_text("model_id", 1..=LONGEST_MODEL),
            provider: fields.maybe_text("model_provider", 1..=LONGEST_PROVIDER),
            interaction: interaction.and_then(Interaction::named),
        }
    }

    /// Whose settings are meant. Whoever has said who he is cannot mean somebody else's.
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
    pub(super) async fn settings(
        &self,
        app: &AppState,
        user: Option<&User>,
    ) -> Result<Settings, Reply> {
        let mut settings = match self.whose(user)? {
            Some(user) => app.settings_of(&user).await?,
            None => Settings::default(),
        };
        settings.selected_model_id = self.model.clone().or(settings.selected_model_id);
        settings.model_provider = self.provider.clone().or(settings.model_provider);
        settings.interaction_mode = self.interaction.unwrap_or(settings.interaction_mode);
        Ok(settings)
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

    pub(super) fn read(mut fields: Fields) -> Result<Self, Reply> {
        let mut asked = Self::alone(Overrides::read(&mut fields));
        asked.include_tools = fields.maybe_flag("include_tools").unwrap_or(true);
        asked.query.workspace = fields.maybe_text("workspace_path", 0..=LONGEST_PATH);
        asked.raw = fields.maybe_text("user_query_raw", 0..=LONGEST_QUERY);
        asked.query.conversation =
            fields.maybe_text("conversation_ref", 0..=LONGEST_NAME).unwrap_or_default();
        if let Some(definition) = definition(&mut fields) {
            asked.agent = Agent::new(definition);
        }
        let messages = messages(&mut fields);
        fields.rest()?;
        asked.ask(messages);
        Ok(asked)
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
        let mut payload = Map::new();
        payload.insert("text".into(), json!(self.query.text));
        if !self.query.conversation.is_empty() {
            payload.insert("conversation_ref".into(), json!(self.query.conversation));
        }
        if let Some(workspace) = &self.query.workspace {
            payload.insert("workspace_path".into(), json!(workspace));
        }
        json!({ "type": "query", "payload": payload })
    }
}

fn definition(fields: &mut Fields) -> Option<Definition> {
    let value = fields.take("agent_definition")?;
    match Definition::read(&value) {
        Ok(definition) => Some(definition),
        Err(wrong) => {
            for fault in wrong.0 {
                let place: Vec<Value> = fault.place.split('.').map(Value::from).collect();
                fields.wrong(&place, "value_error", &fault.what);
            }
            None
        }
    }
}

fn messages(fields: &mut Fields) -> Vec<(Role, String)> {
    let mut messages = Vec::new();
    fields.maybe_objects("messages", MOST_MESSAGES, |message| {
        let role = message.word("role", &["user", "assistant", "system", "tool"]);
        let text = message.text("content", 0..=LONGEST_MESSAGE);
        let role = match role {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("tool") => Role::Tool,
            _ => Role::User,
        };
        messages.push((role, text));
    });
    messages
}
