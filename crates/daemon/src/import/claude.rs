//! Transcripts of Claude Code: `SESSION.jsonl`, a record on each line.

use std::path::PathBuf;

use serde_json::Value;

use super::Source;
use super::transcript::{Transcript, text_of};

/// Parses a log; `None` if it is not from Claude Code. Internal messages of subagents are left out.
pub(super) fn read(name: &str, lines: &[Value]) -> Option<Transcript> {
    let spoken = |line: &&Value| {
        matches!(line["type"].as_str(), Some("user" | "assistant")) && line["message"].is_object()
    };
    let first = lines.iter().find(spoken)?;
    let id = first["sessionId"].as_str().unwrap_or(name);
    let mut transcript = Transcript::new(Source::Claude, id);
    transcript.cwd = first["cwd"].as_str().map(PathBuf::from);
    let skipped = |line: &&Value| line["isSidechain"] == true || line["isMeta"] == true;
    for line in lines.iter().filter(spoken).filter(|line| !skipped(line)) {
        let content = &line["message"]["content"];
        match content.as_array() {
            None => add_text(&mut transcript, line, &text_of(content)),
            Some(blocks) => blocks.iter().for_each(|block| part(&mut transcript, line, block)),
        }
    }
    Some(transcript)
}

fn add_text(transcript: &mut Transcript, line: &Value, text: &str) {
    match line["type"].as_str() {
        Some("user") => transcript.user(text),
        Some(_) | None => transcript.answer(text),
    }
}

fn part(transcript: &mut Transcript, line: &Value, block: &Value) {
    let string = |name: &str| block[name].as_str().unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => add_text(transcript, line, string("text")),
        Some("thinking") => transcript.thought(string("thinking")),
        Some("tool_use") => transcript.call(string("id"), string("name"), &block["input"]),
        Some("tool_result") => {
            transcript.result(string("tool_use_id"), &text_of(&block["content"]));
        }
        Some(_) | None => {}
    }
}
