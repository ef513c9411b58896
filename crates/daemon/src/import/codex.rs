//! Transcripts of codex: `rollout-*.jsonl`, a response item on each line.

use std::path::PathBuf;

use serde_json::Value;

use super::Source;
use super::transcript::{Transcript, text_of};

/// Messages that codex adds in the user's name.
const INJECTED: [&str; 3] =
    ["<environment_context>", "<user_instructions>", "# AGENTS.md instructions"];

/// Parses a log; `None` if it is not from codex.
pub(super) fn read(name: &str, lines: &[Value]) -> Option<Transcript> {
    let meta =
        lines.iter().find(|line| line["type"] == "session_meta").map(|line| &line["payload"]);
    // Logs of the first versions have bare items, and the session on the first line.
    let first = lines.first()?;
    let is_old = first["id"].is_string() && first.get("instructions").is_some();
    let meta = meta.or(is_old.then_some(first))?;
    let mut transcript = Transcript::new(Source::Codex, meta["id"].as_str().unwrap_or(name));
    transcript.cwd = meta["cwd"].as_str().map(PathBuf::from);
    for line in lines {
        match line["type"].as_str() {
            Some("response_item") => item(&mut transcript, &line["payload"]),
            Some("turn_context") if transcript.cwd.is_none() => {
                transcript.cwd = line["payload"]["cwd"].as_str().map(PathBuf::from);
            }
            Some(_) if is_old => item(&mut transcript, line),
            Some(_) | None => {}
        }
    }
    Some(transcript)
}

fn item(transcript: &mut Transcript, item: &Value) {
    let string = |name: &str| item[name].as_str().unwrap_or_default();
    match item["type"].as_str() {
        Some("message") => {
            let text = text_of(&item["content"]);
            match item["role"].as_str() {
                Some("user") if !INJECTED.iter().any(|start| text.starts_with(start)) => {
                    transcript.user(&text);
                }
                Some("assistant") => transcript.answer(&text),
                Some(_) | None => {}
            }
        }
        Some("reasoning") => transcript.thought(&text_of(&item["summary"])),
        Some("function_call") => {
            let input = serde_json::from_str(string("arguments"));
            let input = input.unwrap_or_else(|_| item["arguments"].clone());
            transcript.call(string("call_id"), string("name"), &input);
        }
        Some("custom_tool_call") => {
            transcript.call(string("call_id"), string("name"), &item["input"]);
        }
        Some("local_shell_call") => {
            transcript.call(string("call_id"), "shell", &item["action"]);
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            transcript.result(string("call_id"), &output(&item["output"]));
        }
        Some(_) | None => {}
    }
}

/// The output of a call, which may be JSON in a string.
fn output(output: &Value) -> String {
    let inner = output.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inner {
        Some(inner) if inner["output"].is_string() => text_of(&inner),
        Some(_) | None => text_of(output),
    }
}
