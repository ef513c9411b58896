//! Saved sessions: files that can be moved and opened elsewhere.

use std::path::PathBuf;

use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::Role;
use quintet_kernel::{SessionId, State};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shape;

const FORMAT: &str = "quintet-session";
const VERSION: u64 = 1;

/// The content of a saved session.
#[derive(Debug)]
pub(super) struct SavedSession {
    pub(super) session: SessionId,
    pub(super) workspace: PathBuf,
    pub(super) messages: Vec<ImportedMessage>,
}

#[derive(Deserialize, Serialize)]
struct File {
    format: String,
    version: u64,
    session: SessionHeader,
    #[serde(default)]
    messages: Vec<SavedMessage>,
    #[serde(default)]
    blocks: Vec<Value>,
}

#[derive(Deserialize, Serialize)]
struct SessionHeader {
    id: String,
    #[serde(default)]
    title: String,
    created: i64,
    updated: i64,
    workspace: PathBuf,
    #[serde(default)]
    model: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct SavedMessage {
    role: String,
    content: String,
    #[serde(default)]
    timestamp: Option<String>,
}

/// Encodes a session as a file.
pub(super) fn write(state: &State, history: bool, blocks: bool) -> Vec<u8> {
    let file = json!({
        "format": FORMAT,
        "version": VERSION,
        "session": {
            "id": state.id.as_str(),
            "title": state.summary().title,
            "created": state.created.unwrap_or(state.updated).micros() / 1_000_000,
            "updated": state.updated.micros() / 1_000_000,
            "workspace": state.workspace,
            "model": state.model.as_ref().map(ToString::to_string),
        },
        "messages": if history { shape::messages_view(state) } else { Vec::new() },
        "blocks": if blocks { shape::blocks_view(state) } else { Vec::new() },
    });
    let mut bytes = serde_json::to_vec_pretty(&file).expect("values serialize");
    bytes.push(b'\n');
    bytes
}

/// Parses a saved session. Fails with the reason.
pub(super) fn read(bytes: &[u8]) -> Result<SavedSession, String> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if file.format != FORMAT || file.version != VERSION {
        return Err(format!(
            "the format is {} {}, not {FORMAT} {VERSION}",
            file.format, file.version
        ));
    }
    let session = SessionId::parse(&file.session.id).ok_or("the session id is invalid")?;
    if !file.session.workspace.is_absolute() {
        return Err("the workspace is not an absolute path".into());
    }
    let messages = file.messages.into_iter().map(imported).collect::<Result<_, _>>()?;
    Ok(SavedSession { session, workspace: file.session.workspace, messages })
}

fn imported(message: SavedMessage) -> Result<ImportedMessage, String> {
    let role = match message.role.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        other => return Err(format!("unknown role {other:?}")),
    };
    Ok(ImportedMessage::text(role, message.content))
}

#[cfg(test)]
mod tests {
    use quintet_kernel::message::Part;

    use super::*;

    #[test]
    fn invalid_files_are_refused_with_a_reason() {
        let head = r#""session":{"id":"s1","created":0,"updated":0,"workspace":"/w"}"#;
        let file = |rest: &str| format!(r#"{{"format":"quintet-session","version":1,{rest}}}"#);
        for (text, why) in [
            ("", "EOF"),
            ("[]", "invalid length"),
            (&*format!(r#"{{"format":"x","version":1,{head}}}"#), "the format is x 1"),
            (&*file(&head.replace("s1", "../x")), "id is invalid"),
            (&*file(&head.replace("/w", "w")), "not an absolute path"),
            (
                &*file(&format!(r#"{head},"messages":[{{"role":"tool","content":""}}]"#)),
                "unknown role",
            ),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        let good = file(&format!(r#"{head},"messages":[{{"role":"user","content":"hi"}}]"#));
        let message = &read(good.as_bytes()).unwrap().messages[0];
        assert_eq!(message.parts, [Part::Text("hi".into())]);
    }
}
