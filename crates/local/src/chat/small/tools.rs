//! The tools for small models: few, with short descriptions and an example.

use std::sync::Arc;

use quintet_kernel::model::Prompt;
use quintet_kernel::tool::ToolSpec;
use serde_json::json;

use crate::chat::offer;

/// A tool that only small models have: its calls are converted to edits, see [`repair`].
pub(super) const APPEND: &str = "append_file";
/// Another one, whose calls are converted to commands.
pub(super) const RENAME: &str = "rename_everywhere";

/// The tools that small models can use, with their descriptions.
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
        r#"{"name": "shell", "description": "Run a shell command: tests, scripts, mv, rm, wc -l, git log, git add -A && git commit -m TEXT, git checkout -b NEW_BRANCH", "parameters": {"command": "string"}}"#,
    ),
];

/// Daemon tools that would only distract: another tool does the same, or they are too difficult.
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

/// Maximum number of other tools, such as those of an MCP server, that are offered with their own
/// descriptions.
const OTHERS_LIMIT: usize = 6;

/// The tools that a small model is offered, the known ones first.
pub(crate) fn tools(offered: &[Arc<ToolSpec>]) -> Vec<Arc<ToolSpec>> {
    let find = |name: &str| offered.iter().find(|tool| tool.name == name).cloned();
    let known = KNOWN.iter().filter_map(|(name, _)| match *name {
        APPEND => find("edit_file").map(|edit| small_model_tool(APPEND, ["path", "text"], &edit)),
        RENAME => find("shell").map(|shell| small_model_tool(RENAME, ["old", "new"], &shell)),
        name => find(name),
    });
    let is_other = |tool: &&Arc<ToolSpec>| {
        let name = tool.name.as_str();
        !LEFT_OUT.contains(&name) && !KNOWN.iter().any(|(known, _)| *known == name)
    };
    let others = offered.iter().filter(is_other).take(OTHERS_LIMIT);
    known.chain(others.cloned()).collect()
}

/// A tool that only small models have, in place of another one.
fn small_model_tool(name: &str, arguments: [&str; 2], instead: &ToolSpec) -> Arc<ToolSpec> {
    let text = json!({ "type": "string" });
    let properties = arguments.map(|name| (name.to_owned(), text.clone()));
    let properties: serde_json::Map<_, _> = properties.into_iter().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": arguments });
    Arc::new(ToolSpec { name: name.into(), schema, ..instead.clone() })
}

/// The part of the system prompt about tools.
pub(in crate::chat) fn offer(prompt: &Prompt) -> String {
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
