//! A query of the user, with the context that the client sends.

use serde_json::Value;

use super::agent_definition;
use super::agent_definition::{Definition, Layer};
use super::tool_results;
use crate::windie::decode::{REF_LIMIT, workspace};
use crate::windie::fields::{ENTRIES_LIMIT, Object};

/// The longest query, in characters; the rest is cut.
const TEXT_LIMIT: usize = 50_000;
/// The longest message with repository rules.
const RULES_LIMIT: usize = 200_000;

/// The stored member with the id of the client's agent.
pub(crate) const AGENT: &str = "agent_id";
/// The stored member with the client's id of the history that a query leads to.
pub(crate) const REVISION: &str = "revision_id";
/// The stored member of a query whose answer should be spoken.
pub(crate) const SPEECH: &str = "speech_mode_enabled";

/// A query of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query {
    /// The user's text.
    pub(crate) text: String,
    /// The client's name of the conversation.
    pub(crate) conversation: String,
    /// The text for models, with the context that the client adds.
    pub(crate) content: Option<String>,
    /// Pictures of the screen, by their artifact ids.
    pub(crate) screenshots: Vec<String>,
    /// The folder to work in.
    pub(crate) workspace: Option<String>,
    /// Rules of the repository.
    pub(crate) rules: Vec<String>,
    /// Additional instructions for this query.
    pub(crate) layers: Vec<Layer>,
    /// The agent for this query.
    pub(crate) definition: Option<Definition>,
    /// The client's id of the history that this query leads to.
    pub(crate) revision: Option<String>,
    /// Data of the client that is stored and not sent to models.
    pub(crate) front_end_data: Value,
}

impl Query {
    /// Reads a query. Fails if its text is empty.
    pub(crate) fn of(payload: &Object<'_>) -> Result<Self, String> {
        let text = payload.needed_text("text", 0..=usize::MAX);
        let conversation = payload.needed("conversation_ref").solid_text(REF_LIMIT);
        let content = content(payload, &text);
        let revision = payload.text("revision_id", 0..=REF_LIMIT);
        let query = Self {
            text: sanitized(&text),
            conversation: conversation.unwrap_or_default(),
            content,
            screenshots: screenshots(payload),
            workspace: workspace(payload),
            rules: rules(payload),
            layers: agent_definition::layers(payload, "client_prompt_layers"),
            definition: payload.object("agent_definition").map(|object| Definition::of(&object)),
            revision: revision.filter(|revision| !revision.trim().is_empty()),
            front_end_data: tool_results::front_end_data(payload),
        };
        if query.text.is_empty() {
            return Err("Invalid query: Query text cannot be empty".into());
        }
        Ok(query)
    }
}

/// The ids of the pictures; a list takes precedence over a single one.
fn screenshots(payload: &Object<'_>) -> Vec<String> {
    let single = payload.text("screenshot_ref", 0..=REF_LIMIT);
    let listed = payload.field("screenshot_refs").names().unwrap_or_default();
    if listed.is_empty() {
        single.into_iter().filter(|name| !name.trim().is_empty()).collect()
    } else {
        listed
    }
}

/// Repository rules, which are sent as messages.
pub(crate) fn rules(payload: &Object<'_>) -> Vec<String> {
    let rule = |message: &Object<'_>| {
        message.needed("role").choice(&[("user", ())]);
        message.needed_text("content", 0..=RULES_LIMIT)
    };
    let rules = payload.objects("repo_instruction_messages", ENTRIES_LIMIT, rule);
    rules.into_iter().filter(|rule| !rule.trim().is_empty()).collect()
}

/// The text for models: as the client wrote it, or else made of the sections of its context.
fn content(payload: &Object<'_>, text: &str) -> Option<String> {
    let written = payload.text("content", 0..=usize::MAX).map(|content| content.replace('\0', ""));
    let context = payload.object("query_context");
    let written = written.filter(|content| !content.trim().is_empty());
    written.or_else(|| sections(&context?, &sanitized(text)))
}

/// A query with sections of context before it, each between tags of its name.
fn sections(context: &Object<'_>, text: &str) -> Option<String> {
    let tagged = |(name, value): (&String, &Value)| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let text = match value {
            Value::String(text) => text.replace('\0', ""),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let text = if text.trim().is_empty() { "None" } else { text.trim() };
        let named = !name.is_empty() && name != "user_query" && name.chars().all(plain);
        named.then(|| format!("<{name}>\n{text}\n</{name}>\n\n"))
    };
    let sections: String = context.members().iter().filter_map(tagged).collect();
    (!sections.is_empty()).then(|| format!("{sections}<user_query>\n{text}\n</user_query>"))
}

/// The user's text, trimmed, without NUL and cut to the limit.
fn sanitized(text: &str) -> String {
    let text = text.replace('\0', "");
    let text = text.trim();
    let end = text.char_indices().nth(TEXT_LIMIT).map_or(text.len(), |(end, _)| end);
    text[..end].into()
}
