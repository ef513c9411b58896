//! Commands that begin with a slash, and the help.

use std::borrow::Cow;

use serde_json::Value;

use super::{Model, Pane};
use crate::wire::Request;

/// A command that begins with a slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlashCommand {
    pub(crate) name: Cow<'static, str>,
    pub(crate) arguments: Cow<'static, str>,
    pub(crate) help: Cow<'static, str>,
}

const fn command(name: &'static str, arguments: &'static str, help: &'static str) -> SlashCommand {
    SlashCommand {
        name: Cow::Borrowed(name),
        arguments: Cow::Borrowed(arguments),
        help: Cow::Borrowed(help),
    }
}

/// All commands, as the help and the list below a slash show them.
pub(crate) const COMMANDS: [SlashCommand; 7] = [
    command("/new", "", "start a new session"),
    command("/sessions", "", "open, search and delete sessions"),
    command("/model", " [NAME]", "list models, or choose one"),
    command("/resume", "", "continue an answer that was paused after a crash"),
    command("/clear", "", "clear the screen"),
    command("/help", "", "keys and commands"),
    command("/quit", "", "leave"),
];

/// The keys and their effects.
pub(crate) const KEYS: [(&str, &str); 11] = [
    ("Enter", "ask"),
    ("Alt-Enter, Ctrl-J", "a new line"),
    ("Up, Down", "input history"),
    ("PgUp, PgDn, Esc", "scroll, back to the end"),
    ("Ctrl-F", "search the conversation"),
    ("Ctrl-L", "sessions"),
    ("Ctrl-C", "stop the answer; twice: quit"),
    ("Ctrl-D", "quit"),
    ("Ctrl-A E W U K", "line start, end; delete word, to start, to end"),
    ("y n a s", "yes, no, always this one, always similar (for approvals)"),
    ("a leading space", "keeps a line out of the history"),
];

impl Model {
    /// The commands that match the input; none unless it begins with a slash.
    pub(crate) fn offered_commands(&self) -> Vec<SlashCommand> {
        let typed = self.editor.text();
        if !typed.starts_with('/') || !matches!(self.pane, Pane::Chat) {
            return Vec::new();
        }
        let all = COMMANDS.into_iter().chain(self.chat.prompts.iter().cloned());
        all.filter(|command| command.name.starts_with(typed)).collect()
    }

    /// Stores the prompts that servers offer.
    pub(super) fn take_prompts(&mut self, result: &Value) {
        let prompt = |prompt: &Value| {
            let line = |field: &str| {
                let text = prompt[field].as_str()?;
                Some(text.lines().next().unwrap_or_default().to_owned())
            };
            let arguments = line("arguments").filter(|arguments| !arguments.is_empty());
            Some(SlashCommand {
                name: format!("/{}", line("name")?).into(),
                arguments: arguments.map(|all| format!(" {all}")).unwrap_or_default().into(),
                help: line("description")?.into(),
            })
        };
        let listed = result["prompts"].as_array().into_iter().flatten();
        self.chat.prompts = listed.filter_map(prompt).collect();
    }

    /// Completes the input to the first command that matches.
    pub(super) fn complete_command(&mut self) {
        if let Some(command) = self.offered_commands().first() {
            let space = if command.arguments.is_empty() { "" } else { " " };
            self.editor.set(format!("{}{space}", command.name));
        }
    }

    pub(super) fn command(&mut self, line: &str) -> Vec<Request> {
        let typed = format!("/{line}");
        let is_typed = |prompt: &SlashCommand| {
            let rest = typed.strip_prefix(&*prompt.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
        };
        if self.chat.prompts.iter().any(is_typed) {
            return self.send_or_queue(typed);
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match name {
            "help" | "?" => self.pane = Pane::Help,
            "sessions" => return self.open_sessions(),
            "new" => self.switch(None),
            "clear" => self.transcript.clear(),
            "model" | "models" => self.choose(rest.trim()),
            "resume" => return self.resume(),
            "quit" | "exit" | "q" => self.leaving = true,
            other => self.hint = Some(format!("unknown command /{other}; type / to see all")),
        }
        Vec::new()
    }

    fn choose(&mut self, name: &str) {
        if name.is_empty() {
            let list = self.chat.models.join("\n");
            self.transcript.add_note(format!("models:\n{list}"));
            return;
        }
        self.chat.chosen = Some(name.to_owned());
        self.chat.model = Some(name.to_owned());
        self.hint = Some(format!("model is now {name}"));
    }

    fn resume(&mut self) -> Vec<Request> {
        let query = self.chat.running.as_ref().and_then(|running| running.query.clone());
        match query {
            Some(query) => vec![Request::Resume { query }],
            None => {
                self.hint = Some("no answer is paused".into());
                Vec::new()
            }
        }
    }
}
