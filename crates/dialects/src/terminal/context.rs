//! The context of a terminal: folder, shell, recent commands and output, as models receive it.

use std::path::PathBuf;

use quintet_kernel::Time;

use super::redact;
use crate::jsonrpc::{Error, Fields};

/// The most entries and bytes of each kind that are stored.
const COMMANDS_LIMIT: usize = 50;
const FILES_LIMIT: usize = 20;
const VARIABLES_LIMIT: usize = 500;
const OUTPUT_BYTES_LIMIT: usize = 64 * 1024;
/// Estimate of the bytes in a token.
const BYTES_PER_TOKEN: u64 = 4;

/// A command that the user typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TypedCommand {
    pub(super) command: String,
    pub(super) exit_code: Option<i64>,
    /// The time, in seconds since 1970.
    pub(super) timestamp: Option<i64>,
}

/// The context that a terminal has sent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) cwd: Option<PathBuf>,
    /// True if the client sent `cwd` since its last query.
    moved: bool,
    pub(super) shell: Option<String>,
    env: Vec<(String, String)>,
    pub(super) commands: Vec<TypedCommand>,
    output: Option<String>,
    files: Vec<String>,
}

impl Context {
    /// Updates the fields that the client sent; the others stay. Fails if a field has the wrong type.
    pub(super) fn update(&mut self, fields: &Fields<'_>) -> Result<(), Error> {
        let mut next = self.clone();
        if let Some(cwd) = fields.text("cwd")? {
            let cwd = PathBuf::from(cwd);
            if !cwd.is_absolute() || cwd.to_string_lossy().contains('\0') {
                return Err(fields.invalid("cwd", "an absolute path"));
            }
            (next.cwd, next.moved) = (Some(cwd), true);
        }
        if let Some(shell) = fields.text("shell")? {
            next.shell = Some(shell.to_owned());
        }
        for (name, value) in fields.text_map("env")?.unwrap_or_default() {
            next.env.retain(|(known, _)| known != name);
            next.env.push((name.to_owned(), value.to_owned()));
        }
        next.env.drain(..next.env.len().saturating_sub(VARIABLES_LIMIT));
        if let Some(commands) = fields.objects("recent_commands")? {
            next.commands = commands.iter().map(typed_command).collect::<Result<_, _>>()?;
            next.commands.drain(..next.commands.len().saturating_sub(COMMANDS_LIMIT));
        }
        if let Some(output) = fields.text("recent_output")? {
            let from = output.floor_char_boundary(output.len().saturating_sub(OUTPUT_BYTES_LIMIT));
            next.output = Some(output[from..].to_owned());
        }
        if let Some(files) = fields.text_list("open_files")? {
            next.files = files.into_iter().take(FILES_LIMIT).map(Into::into).collect();
        }
        *self = next;
        Ok(())
    }

    /// The new workspace, if the client sent one since its last query.
    pub(super) fn moved_to(&self) -> Option<PathBuf> {
        self.cwd.clone().filter(|_| self.moved)
    }

    /// Marks the directory as known to the session.
    pub(super) fn clear_moved(&mut self) {
        self.moved = false;
    }

    /// The context as text for a model, within a token budget; `None` if it is empty. Short facts come
    /// first, and the output takes the rest.
    pub(super) fn for_model(&self, tokens: u64) -> Option<String> {
        let limit = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        let secrets = redact::secrets(self.variables());
        let mut text = String::new();
        for line in self.lines(&secrets) {
            let line = format!("\n{line}");
            if text.len() + line.len() > limit.saturating_sub(HEADER.len()) {
                break;
            }
            text.push_str(&line);
        }
        let left = limit.saturating_sub(HEADER.len() + text.len());
        text.extend(self.output(left, &secrets));
        (!text.is_empty()).then(|| format!("{HEADER}{text}"))
    }

    fn lines(&self, secrets: &[String]) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.cwd.as_ref().map(|cwd| format!("Current directory: {}", cwd.display())));
        lines.extend(self.shell.as_ref().map(|shell| format!("Shell: {shell}")));
        if !self.files.is_empty() {
            lines.push(format!("Open files: {}", self.files.join(", ")));
        }
        if !self.commands.is_empty() {
            lines.push("Recent commands, the newest first:".into());
            lines.extend(self.commands.iter().rev().map(|command| command.line(secrets)));
        }
        let shown = self.variables().filter(|(name, _)| redact::is_context_variable(name));
        let one = |(name, value): (&str, &str)| format!("{name}={}", redact::value(name, value));
        let env: Vec<_> = shown.map(one).collect();
        if !env.is_empty() {
            lines.push(format!("Environment: {}", env.join(" ")));
        }
        lines
    }

    /// The end of the output, because it usually has the result.
    fn output(&self, limit: usize, secrets: &[String]) -> Option<String> {
        const LABEL: &str = "\nRecent output:\n";
        let output = redact::text(self.output.as_deref()?.trim_end(), secrets);
        let limit = limit.checked_sub(LABEL.len()).filter(|limit| *limit > 0)?;
        let from = match output.len().checked_sub(limit) {
            None | Some(0) => 0,
            Some(cut) => output.ceil_char_boundary(cut),
        };
        (!output.is_empty()).then(|| format!("{LABEL}{}", &output[from..]))
    }

    fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

const HEADER: &str = "The person's terminal at this moment:";

impl TypedCommand {
    fn line(&self, secrets: &[String]) -> String {
        let command = redact::text(&self.command, secrets);
        let when = self.timestamp.map(|at| Time::from_micros(at.saturating_mul(1_000_000)));
        let when = when.map(|at| format!(", {at}")).unwrap_or_default();
        match self.exit_code {
            Some(code) => format!("$ {command} (exit code {code}{when})"),
            None => format!("$ {command}"),
        }
    }
}

fn typed_command(fields: &Fields<'_>) -> Result<TypedCommand, Error> {
    Ok(TypedCommand {
        command: fields.required_text("command")?.to_owned(),
        exit_code: fields.integer("exit_code")?,
        timestamp: fields.number("timestamp")?.map(|at| at as i64),
    })
}

#[cfg(test)]
mod tests;
