//! The servers' prompts: their list, and messages that begin with one.

use std::path::PathBuf;

use quintet_kernel::SessionId;
use quintet_kernel::command::NewAttachment;
use quintet_kernel::message::{MediaKind, Part};
use quintet_kernel::port::{PromptContent, ServerPrompt};
use serde_json::{Value, json};

use super::super::decode::rpc_error;
use super::Connection;
use crate::jsonrpc::{Error, INVALID_PARAMS};

/// The parts of a message and its files.
type MessageContent = (Vec<Part>, Vec<(MediaKind, NewAttachment)>);

impl Connection {
    /// The list of prompts.
    pub(super) fn list_prompts(&self) -> Value {
        let session = self.followed.last().map(|entry| &entry.session);
        let prompts = self.app.services.server_prompts.list(session, &self.folder());
        let one = |prompt: &ServerPrompt| {
            json!({
                "name": prompt.name,
                "description": prompt.description,
                "arguments": prompt.hint(),
            })
        };
        json!({ "prompts": prompts.iter().map(one).collect::<Vec<_>>() })
    }

    /// The content of a message. If it begins with a server's prompt, that is filled in. Fails if that
    /// fails.
    pub(super) async fn message_content(
        &self,
        session: &SessionId,
        message: String,
    ) -> Result<MessageContent, Error> {
        let (folder, server_prompts) = (self.folder(), &self.app.services.server_prompts);
        let prompts = server_prompts.list(Some(session), &folder);
        let Some((prompt, arguments)) = ServerPrompt::typed(&prompts, &message) else {
            return Ok((vec![Part::Text(message)], Vec::new()));
        };
        let filled = server_prompts.fill(Some(session), &folder, &prompt.name, arguments).await;
        let contents = filled.map_err(|why| Error::new(INVALID_PARAMS, why))?;
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for content in contents {
            match content {
                PromptContent::Text(text) => parts.push(Part::Text(text)),
                PromptContent::File { kind, name, mime, content } => {
                    let size = content.len() as u64;
                    let blob = self.app.services.blobs.put(content).await;
                    let blob = blob.map_err(|error| rpc_error(&error.into()))?;
                    files.push((kind, NewAttachment { name, mime, blob, size }));
                }
            }
        }
        Ok((parts, files))
    }

    /// The working directory of the client.
    fn folder(&self) -> PathBuf {
        self.link.context.cwd.clone().unwrap_or_default()
    }
}
