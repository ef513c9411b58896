//! What a small model needs beyond what a large one is told: few tools in few words, an example, and a hint
//! after each result. Chosen by `small` in the model's row.

pub(crate) mod code;
pub(crate) mod grammar;
pub(crate) mod repair;
pub(crate) mod request;

use std::sync::Arc;

use quintet_kernel::model::{Prompt, RawToolCall, ToolChoice};
use quintet_kernel::tool::ToolSpec;
use serde_json::json;

use super::offer;
use crate::weights::Weights;
use grammar::{Choice, grammar};
use request::Request;

/// The answers of one turn in which a model may be asked again for the change that it only described.
const NUDGED_STEPS: usize = 6;

/// The answers of one turn that must be calls, where a change is asked for.
const CALLED_STEPS: usize = 6;
/// The answers of one turn before a model has to come to an end.
const STEPS_LIMIT: usize = 12;
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
        let reads = self.request.first_reads(&self.system, &self.tools);
        let trial = self.request.first_trial(&self.system).filter(|_| self.has("shell"));
        let trial = trial.map(|command| call("shell", json!({ "command": command })));
        let reads = reads.into_iter().map(|input| call("read_file", input));
        let calls: Vec<RawToolCall> = reads.chain(trial).collect();
        (!calls.is_empty()).then_some(calls)
    }

    fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name)
    }

    /// The form of the answer. Where a change is asked for and none is made, words alone will not do, unless
    /// something went wrong on the way. A model that goes in circles can look at nothing more, and in the end
    /// call nothing more.
    pub(crate) fn grammar(&self) -> String {
        let Request { repeats, failed, steps, .. } = self.request;
        let fitting = self.tools.iter().filter(|tool| self.fits(&tool.name));
        let tools: Vec<Arc<ToolSpec>> = fitting.cloned().collect();
        let choice = match (self.is_undone(), repeats) {
            (_, REPEATS_LIMIT..) | (false, 1..) => Choice::Words,
            (true, _) if tools.is_empty() || steps >= STEPS_LIMIT => Choice::Words,
            (true, 0) if !failed && steps < CALLED_STEPS => Choice::Call,
            (true, _) => Choice::CallOrAnswer,
            (false, _) if self.request.asks_workspace && steps == 0 => Choice::Call,
            (false, _) => Choice::Either,
        };
        grammar(&tools, choice)
    }

    /// True if a call of this tool makes sense where the conversation stands.
    fn fits(&self, tool: &str) -> bool {
        let Request { repeats, changed, broken, wants_change, .. } = self.request;
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
        match tool {
            RENAME => self.request.says(&["rename"]),
            "shell" => !broken,
            _ => repeats == 0 || request::changes(tool),
        }
    }

    /// How freely the model picks its words. With others it does not make the same mistake again.
    pub(crate) fn temperature(&self) -> f64 {
        if self.request.stumbled && self.request.steps > 1 { 0.6 } else { 0.0 }
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
        let Request { steps, repeats, .. } = self.request;
        self.is_undone() && repeats < REPEATS_LIMIT && steps < NUDGED_STEPS
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

/// What a model is told that only described a change.
pub(crate) const NUDGE: &str = "Nothing is changed yet. Do it now, with a function call.";

/// A tool that only small models know: what they call it with becomes an edit, see [`repair`].
const APPEND: &str = "append_file";
/// Another one, which becomes a command.
const RENAME: &str = "rename_everywhere";

/// The tools that a small model gets along with, in the words it is told of them.
const KNOWN: [(&str, &str); 8] = [
    (
        "read_file",
        r#"{"name": "read_file", "description": "Read a file", "parameters": {"path": "string"}}"#,
    ),
    (
        "list_dir",
        r#"{"name": "list_dir", "description": "List the files of a folder", "parameters": {"path": "string"}}"#,
    ),
    (
        "search",
        r#"{"name": "search", "description": "Find the lines with a text in all files", "parameters": {"query": "string"}}"#,
    ),
    (
        "edit_file",
        r#"{"name": "edit_file", "description": "Change a file: replace the text old, copied from the file, by the text new", "parameters": {"path": "string", "old": "string", "new": "string"}}"#,
    ),
    (
        APPEND,
        r#"{"name": "append_file", "description": "Add a text at the end of a file, such as a function or a section", "parameters": {"path": "string", "text": "string"}}"#,
    ),
    (
        RENAME,
        r#"{"name": "rename_everywhere", "description": "Give a function, class or variable another name in all files", "parameters": {"old": "string", "new": "string"}}"#,
    ),
    (
        "write_file",
        r#"{"name": "write_file", "description": "Create a new file with this content", "parameters": {"path": "string", "content": "string"}}"#,
    ),
    (
        "shell",
        r#"{"name": "shell", "description": "Run a shell command: tests, scripts, git, mv, rm, wc", "parameters": {"command": "string"}}"#,
    ),
];

/// Tools of the daemon that would only distract: one of the known ones does the same, or it takes more
/// understanding than there is.
const LEFT_OUT: [&str; 13] = [
    "apply_patch",
    "agent",
    "diagram",
    "find_files",
    "git_status",
    "look",
    "memory_get",
    "memory_search",
    "memory_write",
    "repo_map",
    "repo_tree",
    "update_plan",
    "verify",
];

/// A tool that is not known here, such as one of an MCP server, is offered in its own words, if there are no
/// more than this.
const OTHERS_LIMIT: usize = 6;

/// The tools that a small model is offered, the known ones first.
pub(crate) fn tools(offered: &[Arc<ToolSpec>]) -> Vec<Arc<ToolSpec>> {
    let find = |name: &str| offered.iter().find(|tool| tool.name == name).cloned();
    let known = KNOWN.iter().filter_map(|(name, _)| match *name {
        APPEND => find("edit_file").map(|edit| own(APPEND, ["path", "text"], &edit)),
        RENAME => find("shell").map(|shell| own(RENAME, ["old", "new"], &shell)),
        name => find(name),
    });
    let is_other = |tool: &&Arc<ToolSpec>| {
        let name = tool.name.as_str();
        !LEFT_OUT.contains(&name) && !KNOWN.iter().any(|(known, _)| *known == name)
    };
    let others = offered.iter().filter(is_other).take(OTHERS_LIMIT);
    known.chain(others.cloned()).collect()
}

/// A tool that only small models know, in place of another one.
fn own(name: &str, arguments: [&str; 2], instead: &ToolSpec) -> Arc<ToolSpec> {
    let text = json!({ "type": "string" });
    let properties = arguments.map(|name| (name.to_owned(), text.clone()));
    let properties: serde_json::Map<_, _> = properties.into_iter().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": arguments });
    Arc::new(ToolSpec { name: name.into(), schema, ..instead.clone() })
}

/// The part of the system prompt about tools.
pub(super) fn offer(prompt: &Prompt) -> String {
    let words = |tool: &Arc<ToolSpec>| {
        let known = KNOWN.iter().find(|(name, _)| *name == tool.name);
        known.map_or_else(|| offer::signature(tool), |(_, words)| (*words).to_owned())
    };
    let tools = tools(&prompt.tools);
    let edits = tools.iter().any(|tool| tool.name == "edit_file");
    let signatures: Vec<String> = tools.iter().map(words).collect();
    let example = if edits { EXAMPLE } else { "" };
    format!(
        "# Tools\n\nYou may call one function at a time to do what the user asks.\n\n\
         <tools>\n{}\n{}\n</tools>\n\n\
         A call is a json object within <tool_call></tool_call> tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>\n\
         {example}",
        signatures.join("\n"),
        offer::ANSWER_SIGNATURE,
    )
}

const EXAMPLE: &str = "
To change a line of a file that you have read:
<tool_call>
{\"name\": \"edit_file\", \"arguments\": {\"path\": \"src/app.py\", \"old\": \"DEBUG = True\", \"new\": \"DEBUG = False\"}}
</tool_call>

Look before you answer or change anything. Change files by calling edit_file, never by showing code. \
If a file, a name or a fact that is asked about is not there, say that it is not there.";

/// What a model reads after results: what to do with them. The same results lead to the same words, so that
/// nothing before has to be read again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hints {
    /// The user asked for a change.
    pub(super) wants_change: bool,
    /// Something was changed.
    pub(super) changed: bool,
}

impl Hints {
    pub(super) fn after(self, all_ok: bool) -> &'static str {
        match (self.wants_change, self.changed, all_ok) {
            (true, true, false) => "That did not work. Go on with a corrected function call.",
            (true, false, false) => {
                "That does not work yet. Go on with the function call that puts it right."
            }
            (true, false, true) => "Now go on with the function call that does what I asked for.",
            (true, true, true) => {
                "If all that I asked for is done now, answer in one short sentence. If not, go on \
                 with the next function call."
            }
            (false, ..) => {
                "Use this to answer my question in plain words now. Call another function only if \
                 the question cannot be answered without it."
            }
        }
    }
}

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
