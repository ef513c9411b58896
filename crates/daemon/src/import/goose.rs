//! Transcripts of goose: `NAME.jsonl` of older versions, exports as JSON, and the database of newer ones.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::Source;
use super::transcript::{Transcript, text_of};

/// Parses a log or an export; `None` if it is not from goose.
pub(super) fn read(name: &str, lines: &[Value]) -> Option<Transcript> {
    let head = lines.first().filter(|head| head["working_dir"].is_string())?;
    let mut transcript = Transcript::new(Source::Goose, head["id"].as_str().unwrap_or(name));
    transcript.cwd = head["working_dir"].as_str().map(PathBuf::from);
    let conversation = head["conversation"].as_array().or_else(|| head["messages"].as_array());
    let exported = conversation.map(Vec::as_slice).unwrap_or_default();
    for line in exported.iter().chain(&lines[1..]) {
        message(&mut transcript, line["role"].as_str().unwrap_or_default(), &line["content"]);
    }
    Some(transcript)
}

/// Reads the database; `None` if it is not from goose.
pub(super) fn read_database(file: &Path) -> Result<Option<Vec<Transcript>>> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let Ok(mut sessions) = database.prepare("SELECT id, working_dir FROM sessions ORDER BY id")
    else {
        return Ok(None);
    };
    let Ok(mut messages) = database
        .prepare("SELECT role, content_json FROM messages WHERE session_id = ?1 ORDER BY id")
    else {
        return Ok(None);
    };
    let mut transcripts = Vec::new();
    let rows = sessions
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
    for row in rows {
        let (id, cwd) = row?;
        let rows = messages
            .query_map([&id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        let mut transcript = Transcript::new(Source::Goose, id.as_str());
        transcript.cwd = cwd.map(PathBuf::from);
        for row in rows {
            let (role, content) = row?;
            message(&mut transcript, &role, &serde_json::from_str(&content).unwrap_or_default());
        }
        transcripts.push(transcript);
    }
    Ok(Some(transcripts))
}

fn message(transcript: &mut Transcript, role: &str, content: &Value) {
    for block in content.as_array().into_iter().flatten() {
        let string = |name: &str| block[name].as_str().unwrap_or_default();
        match block["type"].as_str() {
            Some("text") if role == "user" => transcript.user(string("text")),
            Some("text") => transcript.answer(string("text")),
            Some("thinking") => transcript.thought(string("thinking")),
            Some("toolRequest") => {
                let call = &block["toolCall"]["value"];
                let tool = call["name"].as_str().unwrap_or("unnamed");
                transcript.call(string("id"), tool, &call["arguments"]);
            }
            Some("toolResponse") => {
                let result = &block["toolResult"];
                let text = match result.get("value") {
                    Some(value) => text_of(value),
                    None => text_of(&result["error"]),
                };
                transcript.result(string("id"), &text);
            }
            Some(_) | None => {}
        }
    }
}
