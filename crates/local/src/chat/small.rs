//! Help for small models: few tools with short descriptions, an example, and a hint after each result. Enabled by
//! `small` in the model's row.

pub(crate) mod attempts;
pub(crate) mod code;
pub(crate) mod found;
pub(crate) mod grammar;
mod hints;
pub(crate) mod intent;
pub(crate) mod lookup;
pub(crate) mod output;
pub(crate) mod repair;
pub(crate) mod request;
mod tools;

use std::sync::Arc;

use quintet_kernel::model::{Prompt, RawToolCall, ToolChoice};
use quintet_kernel::tool::ToolSpec;
use serde_json::json;

use crate::weights::Weights;
use grammar::{Choice, grammar};
use request::Request;
use tools::{APPEND, RENAME, tools};

pub(super) use hints::Hints;
pub(super) use tools::offer;

/// Maximum number of answers of a turn after which a model is reminded to make a change that it
/// only described.
const NUDGED_STEPS: usize = 6;

/// Number of answers of a turn that must be calls if a change was requested.
const CALLED_STEPS: usize = 6;
/// Maximum number of answers of a turn before a model must finish.
const STEPS_LIMIT: usize = 12;
/// Maximum number of changes of a turn that are tried and undone before a model must give up.
const ATTEMPTS_LIMIT: usize = 4;
/// Maximum number of consecutive calls without new information before a model must answer.
const REPEATS_LIMIT: usize = 2;

/// Facts about a conversation that help a small model to answer.
#[derive(Clone, Debug)]
pub(crate) struct Help {
    request: Request,
    tools: Vec<Arc<ToolSpec>>,
    system: String,
}

impl Help {
    /// `None` for a large model, or if no tools may be called.
    pub(crate) fn of(
        prompt: &Prompt,
        weights: &Weights,
        offered: &[Arc<ToolSpec>],
    ) -> Option<Self> {
        let free = prompt.sampling.format().is_none()
            && *prompt.sampling.tool_choice() == ToolChoice::Auto;
        let tools = tools(offered);
        let helps = weights.small && free && !tools.is_empty();
        helps.then(|| Self { request: Request::of(prompt), tools, system: prompt.system.clone() })
    }

    /// Calls to make before the model is run, if any.
    pub(crate) fn first_calls(&self) -> Option<Vec<RawToolCall>> {
        let call = |tool: &str, input: serde_json::Value| RawToolCall {
            id: String::new(),
            tool: tool.into(),
            arguments: input.to_string(),
        };
        if self.request.untried
            && self.has("shell")
            && let Some(command) = self.request.trial()
        {
            return Some(vec![call("shell", json!({ "command": command }))]);
        }
        if let Some(undo) = self.request.undo().filter(|_| self.has("write_file")) {
            return Some(vec![call("write_file", undo)]);
        }
        let reads = self.request.first_reads(&self.system, &self.tools);
        let trial = self.request.first_trial(&self.system).filter(|_| self.has("shell"));
        let trial = trial.map(|command| call("shell", json!({ "command": command })));
        let lookup = self.first_lookup(!reads.is_empty());
        let lookup = lookup.map(|(tool, input)| call(tool, input));
        let reads = reads.into_iter().map(|input| call("read_file", input));
        let calls: Vec<RawToolCall> = reads.chain(lookup).chain(trial).collect();
        (!calls.is_empty()).then_some(calls)
    }

    /// The call that finds the subject of a request that names no file.
    fn first_lookup(&self, reads_files: bool) -> Option<(&'static str, serde_json::Value)> {
        let Request { steps, wants_change, .. } = self.request;
        if steps > 0 || !self.system.contains(WORKSPACE_MARK) {
            return None;
        }
        if self.request.says(&["git", "commit", "commits", "committed", "branch"]) {
            let looks = !wants_change && self.has("shell");
            return looks.then(|| ("shell", json!({ "command": GIT_LOOK })));
        }
        let is_placed = if wants_change {
            reads_files || self.request.says(&["rename", "write", "create"])
        } else {
            reads_files
                && !self.request.says(&["line", "lines", "where", "calls", "called", "used"])
        };
        let is_about_files =
            wants_change || (self.request.asks && !intent::is_small_talk(&self.request.text));
        let search = lookup::search(&self.request.text).filter(|_| is_about_files && !is_placed);
        search.filter(|_| self.has("search")).map(|input| ("search", input))
    }

    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The grammar of the answer. If a change was requested and not made yet, the answer must be a call, unless
    /// a call failed. A model that repeats itself loses the read tools first, and then all tools.
    pub(crate) fn grammar(&self) -> String {
        let Request { repeats, failed, steps, undone, .. } = self.request;
        let fitting = self.tools.iter().filter(|tool| self.fits(&tool.name));
        let tools: Vec<Arc<ToolSpec>> = fitting.cloned().collect();
        let choice = match (self.is_undone(), repeats) {
            (_, REPEATS_LIMIT..) | (false, 1..) => Choice::Words,
            _ if undone >= ATTEMPTS_LIMIT => Choice::Words,
            (true, _) if self.request.missing && steps > 1 => Choice::Words,
            (true, _) if tools.is_empty() || steps >= STEPS_LIMIT => Choice::Words,
            (true, 0) if self.wants_code() => Choice::Code,
            (true, 0) if !failed && steps < CALLED_STEPS => Choice::Call,
            (true, _) => Choice::CallOrAnswer,
            (false, _) if self.request.asks_workspace && steps == 0 => Choice::Call,
            (false, _) => Choice::Either,
        };
        grammar(&tools, choice)
    }

    /// True if a call of this tool makes sense at this point of the conversation.
    fn fits(&self, tool: &str) -> bool {
        let Request { repeats, changed, broken, wants_change, undone, .. } = self.request;
        if !wants_change {
            // A question requires no change.
            return tool != RENAME && (tool == "shell" || !request::changes(tool));
        }
        if self.request.new_file(&self.system).is_some() && self.has("write_file") {
            return tool == "write_file";
        }
        if !changed && self.request.says(&["git", "commit", "branch"]) && self.has("shell") {
            return tool == "shell";
        }
        if !changed && repeats == 0 && intent::is_addition(&self.request.text) && self.has(APPEND) {
            return tool == APPEND;
        }
        match tool {
            RENAME => self.request.says(&["rename"]),
            "shell" => !broken && undone == 0,
            _ if undone > 0 => request::changes(tool),
            _ => repeats == 0 || request::changes(tool),
        }
    }

    /// The sampling temperature. It rises after a failure, so that the model does not repeat its
    /// mistake.
    pub(crate) fn temperature(&self) -> f64 {
        match self.request.undone {
            0 if self.request.stumbled && self.request.steps > 1 => 0.6,
            0 => 0.0,
            1 => 0.6,
            _ => 0.9,
        }
    }

    /// The grammar of the answer to a reminder.
    pub(crate) fn nudge_grammar(&self) -> String {
        grammar(&self.tools, Choice::Call)
    }

    /// True if the user requested a change and no working one was made.
    fn is_undone(&self) -> bool {
        self.request.wants_change && (!self.request.changed || self.request.broken)
    }

    /// True if an answer without a call would leave the request undone.
    pub(crate) fn lacks_change(&self) -> bool {
        let Request { steps, repeats, undone, .. } = self.request;
        let tries = repeats < REPEATS_LIMIT && undone < ATTEMPTS_LIMIT && !self.request.missing;
        self.is_undone() && tries && steps < NUDGED_STEPS
    }

    /// True if the answer must be code in a fence, which is converted to an edit: small models
    /// write better code there than in the strings of a call.
    pub(crate) fn wants_code(&self) -> bool {
        self.request.is_code_repair() && !self.request.changed && self.has("edit_file")
    }

    /// Number of model answers since the last user message.
    pub(crate) fn steps(&self) -> usize {
        self.request.steps
    }

    /// The change that the code in an answer stands for, if it is unambiguous.
    pub(crate) fn shown_edit(&self, answer: &str) -> Option<RawToolCall> {
        let edit = code::shown_edit(&self.request, answer)?;
        self.tools.iter().any(|tool| tool.name == edit.tool).then_some(edit)
    }

    /// A call with its small mistakes corrected.
    pub(crate) fn repair(&self, call: RawToolCall) -> RawToolCall {
        repair::repair(&self.request, call)
    }
}

/// Shows the history of a repository.
const GIT_LOOK: &str =
    "git log -5 --date=short --format='commit %h by %an on %ad: %s'; git status -sb";

/// The reminder for a model that only described a change.
pub(crate) const NUDGE: &str = "Nothing is changed yet. Do it now, with a function call.";

/// Maximum length of the workspace description, in characters.
const WORKSPACE_LIMIT: usize = 900;
const WORKSPACE_MARK: &str = "Workspace context:\n";

/// The system prompt with a shorter workspace description, because all of it is evaluated before
/// the first answer.
pub(super) fn brief_system(system: &str) -> &str {
    let Some(at) = system.find(WORKSPACE_MARK) else { return system };
    let limit = at + WORKSPACE_MARK.len() + WORKSPACE_LIMIT;
    if system.len() <= limit {
        return system;
    }
    let end = (0..=limit).rev().find(|&end| system.is_char_boundary(end)).unwrap_or(0);
    system[..end].rsplit_once('\n').map_or(system, |(whole_lines, _)| whole_lines)
}

/// Maximum length of a result for a small model, in characters, and how many of them are from its
/// end.
const RESULT_LIMIT: usize = 1600;
const RESULT_END: usize = 1100;
const FILE_LIMIT: usize = 8000;

/// A result without its middle if it is long. The beginning of a file matters, and the end of a
/// command's output.
pub(super) fn brief(tool: &str, text: &str) -> String {
    let words = match tool {
        "search" => Some(found::as_sentences(text)),
        "shell" => Some(output::as_text(text)),
        _ => None,
    };
    let text = words.as_deref().unwrap_or(text);
    let is_file = tool == "read_file";
    let limit = if is_file { FILE_LIMIT } else { RESULT_LIMIT };
    let letters = text.chars().count();
    if letters <= limit {
        return text.into();
    }
    let end = if is_file { 0 } else { RESULT_END };
    let head: String = text.chars().take(limit - end).collect();
    let tail: String = text.chars().skip(letters - end).collect();
    let left_out = letters - limit;
    let advice = if is_file { "; use search to find a place in it" } else { "" };
    format!("{head}\n[{left_out} characters left out{advice}]\n{tail}")
}

#[cfg(test)]
mod tests;
