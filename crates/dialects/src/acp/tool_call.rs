//! Tool calls as an editor shows them: title, kind and locations.

use std::path::Path;

use quintet_kernel::message::text_of;
use quintet_kernel::tool::Outcome;
use serde_json::{Value, json};

/// The most characters of a title.
const TITLE_LIMIT: usize = 200;
/// The most of a call's output that is shown, in bytes.
pub(super) const OUTPUT_LIMIT: usize = 32 * 1024;

/// The title: the actual command, path or query, never only the tool's name.
pub(super) fn title(tool: &str, input: &Value) -> String {
    let field = |name: &str| input[name].as_str().unwrap_or_default();
    let title = match tool {
        "shell" => field("command").to_owned(),
        "read_file" => format!("Read {}{}", field("path"), lines(input)),
        "list_dir" => format!("List {}", input["path"].as_str().unwrap_or(".")),
        "find_files" => format!("Find {}", field("pattern")),
        "search" => format!("Search {:?}", field("query")),
        "write_file" => format!("Write {}", field("path")),
        "edit_file" => format!("Edit {}", field("path")),
        "apply_patch" => format!("Patch {}", patched_paths(field("patch")).join(", ")),
        "fetch_url" => format!("Fetch {}", field("url")),
        "web_search" => format!("Search the web for {:?}", field("query")),
        "spawn_agent" => format!("Subagent: {}", field("task")),
        _ => {
            let values =
                input.as_object().into_iter().flatten().filter(|(_, value)| is_scalar(value));
            let values =
                values.map(|(_, value)| value.as_str().map_or(value.to_string(), str::to_owned));
            [tool.to_owned()].into_iter().chain(values).collect::<Vec<_>>().join(" ")
        }
    };
    let mut lines = title.trim().lines();
    let line = lines.next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_LIMIT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.is_empty() => tool.to_owned(),
        None if lines.next().is_some() => format!("{line} …"),
        None => line.to_owned(),
    }
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

fn lines(input: &Value) -> String {
    match (input["start_line"].as_u64(), input["end_line"].as_u64()) {
        (None, None) => String::new(),
        (Some(first), None) => format!(" (from line {first})"),
        (first, Some(last)) => format!(" (lines {}-{last})", first.unwrap_or(1)),
    }
}

/// The kind, by which editors choose an icon.
pub(super) fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "list_dir" | "repo_tree" | "repo_map" | "git_status" | "look"
        | "memory_get" => "read",
        "search" | "find_files" | "memory_search" => "search",
        "write_file" | "edit_file" | "apply_patch" => "edit",
        "shell" | "verify" => "execute",
        "fetch_url" | "web_search" => "fetch",
        "spawn_agent" => "think",
        _ => "other",
    }
}

/// The files that a call names.
pub(super) fn locations(workspace: &Path, tool: &str, input: &Value) -> Vec<Value> {
    if tool == "apply_patch" {
        let paths = patched_paths(input["patch"].as_str().unwrap_or_default());
        return paths.into_iter().map(|path| location(workspace, path, None)).collect();
    }
    let named = matches!(kind(tool), "read" | "edit");
    let path = input["path"].as_str().filter(|path| named && !path.is_empty());
    let line = input["start_line"].as_u64();
    path.map(|path| location(workspace, path, line)).into_iter().collect()
}

pub(super) fn location(workspace: &Path, path: &str, line: Option<u64>) -> Value {
    let path = workspace.join(path);
    match line {
        Some(line) => json!({ "path": path.to_string_lossy(), "line": line }),
        None => json!({ "path": path.to_string_lossy() }),
    }
}

/// The files that a patch names, in either of the formats that models write.
fn patched_paths(patch: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    for line in patch.lines() {
        let git = line.strip_prefix("+++ ").filter(|path| *path != "/dev/null");
        let git = git.map(|path| path.strip_prefix("b/").unwrap_or(path));
        let verbs = ["*** Update File: ", "*** Add File: ", "*** Delete File: "];
        let envelope = || verbs.iter().find_map(|verb| line.strip_prefix(verb));
        if let Some(path) = git.or_else(envelope)
            && !paths.contains(&path)
        {
            paths.push(path);
        }
    }
    paths
}

/// The result of a call for people: the output of commands without the JSON around it.
pub(super) fn output(outcome: &Outcome) -> String {
    let text = text_of(&outcome.parts);
    let text = match serde_json::from_str(&text) {
        Ok(Value::Array(all)) if !all.is_empty() && all.iter().all(is_command) => {
            all.iter().map(|one| format!("$ {}\n{}", string(one, "cmd"), printed(one))).collect()
        }
        Ok(one) if is_command(&one) => printed(&one),
        _ => text,
    };
    shortened(text)
}

/// The exit code of a command, if there is one.
pub(super) fn exit_code(outcome: &Outcome) -> Option<i64> {
    let result: Value = serde_json::from_str(&text_of(&outcome.parts)).ok()?;
    result["exit_code"].as_i64().filter(|_| is_command(&result))
}

/// Shortens a text to [`OUTPUT_LIMIT`] bytes.
pub(super) fn shortened(mut text: String) -> String {
    if text.len() > OUTPUT_LIMIT {
        let left = text.len() - OUTPUT_LIMIT;
        text.truncate(text.floor_char_boundary(OUTPUT_LIMIT));
        text.push_str(&format!("\n[{left} more bytes]"));
    }
    text
}

fn is_command(value: &Value) -> bool {
    value["cmd"].is_string() && value["exit_code"].is_i64() && value["stdout"].is_string()
}

fn string<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn printed(command: &Value) -> String {
    let mut text = String::new();
    for part in [string(command, "stdout"), string(command, "stderr")] {
        text.push_str(part);
        if !part.is_empty() && !part.ends_with('\n') {
            text.push('\n');
        }
    }
    match command["exit_code"].as_i64() {
        Some(code) if code != 0 => text.push_str(&format!("exit code {code}\n")),
        Some(_) | None => {}
    }
    text
}
