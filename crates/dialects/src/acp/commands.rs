//! Slash commands that a user types instead of a message.

use quintet_kernel::port::ServerPrompt;
use serde_json::{Value, json};

use super::decode::Block;

/// A slash command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlashCommand {
    /// Summarizes the conversation.
    Compact,
    /// Undoes the changes of the last turn that made any.
    Undo,
}

impl SlashCommand {
    const ALL: [Self; 2] = [Self::Compact, Self::Undo];

    /// The command, if the whole prompt is one.
    pub(super) fn of(blocks: &[Block]) -> Option<Self> {
        let [Block::Text(text)] = blocks else { return None };
        let name = text.trim().strip_prefix('/')?;
        Self::ALL.into_iter().find(|command| command.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Compact => "compact",
            Self::Undo => "undo",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Compact => "Summarize the conversation, so that there is room for more",
            Self::Undo => "Undo the file changes of the last turn that made any",
        }
    }

    /// The update that lists all commands and the servers' prompts.
    pub(super) fn available(prompts: &[ServerPrompt]) -> Value {
        let one =
            |command: Self| json!({ "name": command.name(), "description": command.description() });
        let commands: Vec<Value> =
            Self::ALL.map(one).into_iter().chain(prompts.iter().map(prompt_command)).collect();
        json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
    }
}

/// Encodes a server's prompt as a command.
fn prompt_command(prompt: &ServerPrompt) -> Value {
    let mut command = json!({ "name": prompt.name, "description": prompt.description });
    if !prompt.arguments.is_empty() {
        command["input"] = json!({ "hint": prompt.hint() });
    }
    command
}
