//! A query of the user, with the context that the client sends.

use serde_json::Value;

use super::agent_definition;
use super::agent_definition::{Definition, Layer};
use super::tool_results;
use crate::windie::decode::{LONGEST_REF, workspace};
use crate::windie::fields::{ENTRIES_LIMIT, Object};

/// The longest question, in characters; what is longer is cut.
const LONGEST_TEXT: usize = 50_000;
/// The longest message with rules of a repository.
const LONGEST_RULES: usize = 200_000;

/// The note on a query that says which agent of the client asked it.
pub(crate) const AGENT: &str = "agent_id";
/// The note on a query that names the history it leads to.
pub(crate) const REVISION: &str = "revision_id";
/// The note on a query whose answer should be spoken.
pub(crate) const SPEECH: &str = "speech_mode_enabled";

/// A question of the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Query {
    /// What the user said.
    pub(crate) text: String,
    /// The client's name for the conversation.
    pub(crate) conversation: String,
    /// How the client words it for models, with what it tells around it.
    pub(crate) content: Option<String>,
    /// Pictures of the screen, by the names of their artifacts.
    pub(crate) screenshots: Vec<String>,
    /// The folder to work in.
    pub(crate) workspace: Option<String>,
    /// Rules of the repository.
    pub(crate) rules: Vec<String>,
    /// Instructions for this query.
    pub(crate) layers: Vec<Layer>,
    /// What the agent is for this query.
    pub(crate) definition: Option<Definition>,
    /// The client's name for the history that this query leads to.
    pub(crate) revision: Option<String>,
    /// What it keeps with it, and no model is told.
    pub(crate) front_end_data: Value,
}

impl Query {
    /// Reads a query. Fails if it asks nothing.
    pub(crate) fn of(payload: &Object<'_>) -> Result<Self, String> {
        let said = payload.needed_text("text", 0..=usize::MAX);
        let conversation = payload.needed("conversation_ref").solid_text(LONGEST_REF);
        let content = content(payload, &said);
        let revision = payload.text("revision_id", 0..=LONGEST_REF);
        let query = Self {
            text: sanitized(&said),
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

/// The names of the pictures; a list of them goes before a single one.
fn screenshots(payload: &Object<'_>) -> Vec<String> {
    let single = payload.text("screenshot_ref", 0..=LONGEST_REF);
    let listed = payload.field("screenshot_refs").names().unwrap_or_default();
    if listed.is_empty() {
        single.into_iter().filter(|name| !name.trim().is_empty()).collect()
    } else {
        listed
    }
}

/// Rules of a repository that came as messages.
pub(crate) fn rules(payload: &Object<'_>) -> Vec<String> {
    let rule = |message: &Object<'_>| {
        message.needed("role").choice(&[("user", ())]);
        message.needed_text("content", 0..=LONGEST_RULES)
    };
    let rules = payload.objects("repo_instruction_messages", ENTRIES_LIMIT, rule);
    rules.into_iter().filter(|rule| !rule.trim().is_empty()).collect()
}

/// The client's wording: as it is written, or else made of the sections of its context.
fn content(payload: &Object<'_>, said: &str) -> Option<String> {
    let written = payload.text("content", 0..=usize::MAX).map(|content| content.replace('\0', ""));
    let context = payload.object("query_context");
    let written = written.filter(|content| !content.trim().is_empty());
    written.or_else(|| sections(&context?, &sanitized(said)))
}

/// Sections of context around a question, each between tags of its name.
fn sections(context: &Object<'_>, said: &str) -> Option<String> {
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
    (!sections.is_empty()).then(|| format!("{sections}<user_query>\n{said}\n</user_query>"))
}

/// What a person said, without what no model should read, and no longer than it may be.
fn sanitized(text: &str) -> String {
    let text = text.replace('\0', "");
    let text = text.trim();
    let end = text.char_indices().nth(LONGEST_TEXT).map_or(text.len(), |(end, _)| end);
    text[..end].into()
}
