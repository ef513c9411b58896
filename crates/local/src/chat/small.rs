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

/// The answers of one turn in which a model may be asked again for the change that it only described.
const NUDGED_STEPS: usize = 6;

/// The answers of one turn that must be calls, where a change is asked for.
const CALLED_STEPS: usize = 6;
/// The answers of one turn before a model has to come to an end.
const STEPS_LIMIT: usize = 12;
/// The changes of one turn that are tried out and undone before a model has to say that it found none.
const ATTEMPTS_LIMIT: usize = 4;
/// Calls in a row that bring nothing new, before a model has to make do with what it knows.
const REPEATS_LIMIT: usize = 2;

/// What is known of a conversation that helps a small model to answer.
#[derive(Clone, Debug)]
pub(crate) struct Help {
    request: Request,
    tools: Vec<Arc<ToolSpec>>,
    system: String,
}

impl Help {
    /// Nothing for a large model, or where no tools may be called.
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

    /// Calls to make without asking the model, if there are any.
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

    /// The call that finds what a request is about, where it does not say in which file that is.
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

    /// True if a call of this tool makes sense where the conversation stands.
    fn fits(&self, tool: &str) -> bool {
        let Request { repeats, changed, broken, wants_change, undone, .. } = self.request;
        if !wants_change {
            // A question changes no file.
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

    /// How freely the model picks its words. With others it does not make the same mistake again.
    pub(crate) fn temperature(&self) -> f64 {
        match self.request.undone {
            0 if self.request.stumbled && self.request.steps > 1 => 0.6,
            0 => 0.0,
            1 => 0.6,
            _ => 0.9,
        }
    }

    /// The form of the answer to a nudge.
    pub(crate) fn nudge_grammar(&self) -> String {
        grammar(&self.tools, Choice::Call)
    }

    /// True if the user asked for a change and none was made that works.
    fn is_undone(&self) -> bool {
        self.request.wants_change && (!self.request.changed || self.request.broken)
    }

    /// True if an answer without a call leaves undone what the user asked for.
    pub(crate) fn lacks_change(&self) -> bool {
        let Request { steps, repeats, undone, .. } = self.request;
        let tries = repeats < REPEATS_LIMIT && undone < ATTEMPTS_LIMIT && !self.request.missing;
        self.is_undone() && tries && steps < NUDGED_STEPS
    }

    /// True if the answer is to be code in a fence, which becomes an edit: small models write better code so than
    /// in the strings of a call.
    pub(crate) fn wants_code(&self) -> bool {
        self.request.is_code_repair() && !self.request.changed && self.has("edit_file")
    }

    /// Answers of the model since the user spoke.
    pub(crate) fn steps(&self) -> usize {
        self.request.steps
    }

    /// The change that code in an answer stands for, if that is clear.
    pub(crate) fn shown_edit(&self, answer: &str) -> Option<RawToolCall> {
        let edit = code::shown_edit(&self.request, answer)?;
        self.tools.iter().any(|tool| tool.name == edit.tool).then_some(edit)
    }

    /// A call with its small mistakes corrected.
    pub(crate) fn repair(&self, call: RawToolCall) -> RawToolCall {
        repair::repair(&self.request, call)
    }
}

/// Shows what a question about a repository's history is about.
const GIT_LOOK: &str =
    "git log -5 --date=short --format='commit %h by %an on %ad: %s'; git status -sb";

/// What a model is told that only described a change.
pub(crate) const NUDGE: &str = "Nothing is changed yet. Do it now, with a function call.";

/// The most characters of what is told of a workspace.
const WORKSPACE_LIMIT: usize = 900;
const WORKSPACE_MARK: &str = "Workspace context:\n";

/// Standing instructions with less of the workspace: every word of it is read before the first answer.
pub(super) fn brief_system(system: &str) -> &str {
    let Some(at) = system.find(WORKSPACE_MARK) else { return system };
    let limit = at + WORKSPACE_MARK.len() + WORKSPACE_LIMIT;
    if system.len() <= limit {
        return system;
    }
    let end = (0..=limit).rev().find(|&end| system.is_char_boundary(end)).unwrap_or(0);
    system[..end].rsplit_once('\n').map_or(system, |(whole_lines, _)| whole_lines)
}

/// The most characters of a result that a small model is shown, and those of them from the end.
const RESULT_LIMIT: usize = 1600;
const RESULT_END: usize = 1100;
const FILE_LIMIT: usize = 8000;

/// A result with its middle left out if it is long. Of a file the beginning counts, of a command the end.
pub(super) fn brief(tool: &str, text: &str) -> String {
    let words = match tool {
        "search" => Some(found::in_words(text)),
        "shell" => Some(output::in_words(text)),
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
