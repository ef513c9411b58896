//! Transcripts of opencode: exports as JSON, the folder `storage` of older versions, and the database of
//! newer ones.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::Source;
use super::transcript::{Transcript, text_of};

/// Parses an export; `None` if it is not from opencode.
pub(super) fn read(lines: &[Value]) -> Option<Transcript> {
    let [export] = lines else { return None };
    let messages = export["messages"].as_array()?;
    let info = &export["info"];
    let mut transcript = Transcript::new(Source::Opencode, info["id"].as_str()?);
    transcript.cwd = info["directory"].as_str().map(PathBuf::from);
    for message in messages {
        let parts = message["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
        add(&mut transcript, &message["info"], parts);
    }
    Some(transcript)
}

/// True for the storage folder of older versions.
pub(super) fn is_storage(folder: &Path) -> bool {
    ["session", "message", "part"].iter().all(|name| folder.join(name).is_dir())
}

/// Reads a storage folder.
pub(super) fn read_storage(storage: &Path) -> Result<Vec<Transcript>> {
    let mut transcripts = Vec::new();
    for project in fs::read_dir(storage.join("session"))?.flatten() {
        for session in values(&project.path()) {
            let Some(id) = session["id"].as_str() else { continue };
            let mut transcript = Transcript::new(Source::Opencode, id);
            transcript.cwd = session["directory"].as_str().map(PathBuf::from);
            for message in values(&storage.join("message").join(id)) {
                let own = message["id"].as_str().unwrap_or_default();
                add(&mut transcript, &message, &values(&storage.join("part").join(own)));
            }
            transcripts.push(transcript);
        }
    }
    Ok(transcripts)
}

/// The JSON files of a folder, sorted by name, which is their order of creation.
fn values(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |file: &PathBuf| serde_json::from_slice(&fs::read(file).ok()?).ok();
    files.iter().filter_map(read).collect()
}

/// Reads the database; `None` if it is not from opencode.
pub(super) fn read_database(file: &Path) -> Result<Option<Vec<Transcript>>> {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let Ok(mut sessions) = database.prepare("SELECT id, directory FROM session ORDER BY id") else {
        return Ok(None);
    };
    let mut messages =
        database.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY id")?;
    let mut parts = database.prepare("SELECT data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let mut transcripts = Vec::new();
    let rows = sessions
        .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?)))?;
    let json = |text: String| serde_json::from_str::<Value>(&text).unwrap_or_default();
    for row in rows {
        let (id, cwd) = row?;
        let mut transcript = Transcript::new(Source::Opencode, id.as_str());
        transcript.cwd = cwd.map(PathBuf::from);
        let rows = messages
            .query_map([&id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (message, data) = row?;
            let own = parts.query_map([&message], |row| row.get::<_, String>(0))?;
            let own = own.map(|part| part.map(json)).collect::<Result<Vec<_>, _>>()?;
            add(&mut transcript, &json(data), &own);
        }
        transcripts.push(transcript);
    }
    Ok(Some(transcripts))
}

fn add(transcript: &mut Transcript, message: &Value, parts: &[Value]) {
    let is_user = message["role"] == "user";
    for part in parts.iter().filter(|part| part["synthetic"] != true) {
        let string = |name: &str| part[name].as_str().unwrap_or_default();
        match part["type"].as_str() {
            Some("text") if is_user => transcript.user(string("text")),
            Some("text") => transcript.answer(string("text")),
            Some("reasoning") => transcript.thought(string("text")),
            Some("tool") => {
                let state = &part["state"];
                transcript.call(string("callID"), string("tool"), &state["input"]);
                let output = state.get("output").or_else(|| state.get("error"));
                transcript.result(string("callID"), &text_of(output.unwrap_or(&Value::Null)));
            }
            Some(_) | None => {}
        }
    }
}
