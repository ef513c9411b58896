//! Prompts that tool servers offer to users.

use std::path::Path;

use super::BoxFuture;
use crate::id::SessionId;
use crate::message::MediaKind;

/// Inbound: the prompts of tool servers (MCP). A user sends one by its name.
pub trait ServerPrompts: Send + Sync {
    /// The currently known prompts for a session in this folder. Must not block.
    fn list(&self, session: Option<&SessionId>, workspace: &Path) -> Vec<ServerPrompt>;
    /// The text of a prompt with the arguments that the user typed. Fails with a reason for the user.
    fn fill<'a>(
        &'a self,
        session: Option<&'a SessionId>,
        workspace: &'a Path,
        name: &'a str,
        arguments: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PromptContent>, String>>;
    /// Number of changes to any list so far.
    fn changes(&self) -> u64;
    /// Resolves when the number of changes differs from `since`.
    fn changed(&self, since: u64) -> BoxFuture<'_, ()>;
}

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPrompt {
    /// The name, as `server:prompt`.
    pub name: String,
    /// A description for people.
    pub description: String,
    /// The arguments, in the order in which they are typed.
    pub arguments: Vec<PromptArgument>,
}

impl ServerPrompt {
    /// The prompt that a line names after a slash, and the text after the name.
    pub fn typed<'a, 'l>(prompts: &'a [Self], line: &'l str) -> Option<(&'a Self, &'l str)> {
        let line = line.trim_start().strip_prefix('/')?;
        let rest = |prompt: &Self| {
            let rest = line.strip_prefix(&prompt.name)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
        };
        let found = prompts.iter().filter_map(|prompt| Some((prompt, rest(prompt)?)));
        found.max_by_key(|(prompt, _)| prompt.name.len())
    }

    /// The arguments as a hint for the person who types them; empty if there are none.
    pub fn hint(&self) -> String {
        let one = |argument: &PromptArgument| {
            if argument.required { argument.name.clone() } else { format!("[{}]", argument.name) }
        };
        self.arguments.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    /// The name.
    pub name: String,
    /// True if the prompt cannot be sent without it.
    pub required: bool,
}

/// A part of a prompt with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptContent {
    /// A text.
    Text(String),
    /// A file that belongs to the prompt.
    File {
        /// The kind of media.
        kind: MediaKind,
        /// A plain name.
        name: String,
        /// The media type.
        mime: String,
        /// The content.
        content: Vec<u8>,
    },
}
