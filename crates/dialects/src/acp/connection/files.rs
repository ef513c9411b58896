//! Files of the editor, for the tools of its sessions.

use std::collections::HashMap;

use quintet_kernel::SessionId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::super::decode::Client;
use super::Connection;
use crate::editors::{EditorRegistry, FileAccess, FileAction, FileRequest};
use crate::jsonrpc::{self, Error};

/// Requests that may wait to be sent.
const REQUESTS_CAPACITY: usize = 16;
const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

/// Requests for files: those to send, and those that wait for a response.
pub(super) struct Files {
    sender: mpsc::Sender<FileRequest>,
    requests: mpsc::Receiver<FileRequest>,
    sent: HashMap<u64, oneshot::Sender<Option<String>>>,
}

impl Files {
    pub(super) fn new() -> Self {
        let (sender, requests) = mpsc::channel(REQUESTS_CAPACITY);
        Self { sender, requests, sent: HashMap::new() }
    }

    /// Lets the tools of a session read and write files in the editor, if it supports that.
    pub(super) fn open(&self, editors: &EditorRegistry, session: &SessionId, client: &Client) {
        let access = FileAccess { reads: client.reads_files, writes: client.writes_files };
        editors.register(session, access, &self.sender);
    }

    /// Unregisters a session that the editor closed, or all of them if none is given.
    pub(super) fn close(&self, editors: &EditorRegistry, session: Option<&SessionId>) {
        editors.close(&self.sender, session);
    }

    /// The next request. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<FileRequest> {
        self.requests.recv().await
    }

    /// Delivers the editor's response to the waiting tool. False if the id is not that of a file request.
    pub(super) fn answered(&mut self, id: u64, outcome: &Result<Value, Error>) -> bool {
        let Some(waiting) = self.sent.remove(&id) else { return false };
        let text = match outcome {
            Ok(result) => Some(result["content"].as_str().unwrap_or_default().to_owned()),
            Err(_) => None,
        };
        // The tool may have been cancelled meanwhile.
        let _ = waiting.send(text);
        true
    }
}

impl Connection {
    /// The message that requests a file from the editor, or sends it one.
    pub(super) fn request_file(&mut self, request: FileRequest) -> String {
        let FileRequest { session, path, action, answer } = request;
        let path = path.to_string_lossy();
        let (method, params) = match action {
            FileAction::Read => (READ, json!({ "sessionId": session.as_str(), "path": path })),
            FileAction::Write(text) => {
                (WRITE, json!({ "sessionId": session.as_str(), "path": path, "content": text }))
            }
        };
        let id = self.next_request;
        self.next_request += 1;
        // Drops requests of tools that stopped waiting.
        self.files.sent.retain(|_, waiting| !waiting.is_closed());
        self.files.sent.insert(id, answer);
        jsonrpc::request(id, method, params)
    }
}
