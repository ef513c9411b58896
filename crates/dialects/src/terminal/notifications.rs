//! Collects the notifications for a client.

use serde_json::{Value, json};

use super::blocks::Block;
use super::encode::ClientPace;
use super::wire::{self, ManyTokens, OneToken, Token};
use crate::jsonrpc::notification;

/// Messages to send, in order. Tokens are batched while the client is behind.
pub(super) struct Notifications {
    pub(super) messages: Vec<String>,
    tokens: Option<(String, Vec<Token>)>,
    pace: ClientPace,
}

impl Notifications {
    pub(super) fn new(pace: ClientPace) -> Self {
        Self { messages: Vec::new(), tokens: None, pace }
    }

    pub(super) fn send(&mut self, method: &str, params: Value) {
        self.flush();
        self.messages.push(notification(method, params));
    }

    /// Appends encoded messages.
    pub(super) fn append(&mut self, messages: Vec<String>) {
        self.flush();
        self.messages.extend(messages);
    }

    /// Sends a block; `printed` is the text that the original client prints for it.
    pub(super) fn block(&mut self, of: (&str, &str), block: &Block, printed: &str, about: Value) {
        let (query, id) = of;
        let mut shown = wire::block(block);
        if let (Value::Object(more), Some(metadata)) = (about, shown["metadata"].as_object_mut()) {
            metadata.extend(more);
        }
        let params = json!({
            "query_id": query,
            "block_id": id,
            "block": shown,
            "type": block.kind.name(),
            "content": printed,
            "language": block.language.as_deref().unwrap_or("text"),
        });
        self.send("stream.block", params);
    }

    pub(super) fn token(&mut self, query_id: &str, token: Token) {
        if self.pace == ClientPace::Current {
            let one = OneToken { query_id, token: &token };
            return self.messages.push(notification("stream.token", one));
        }
        if self.tokens.as_ref().is_some_and(|(id, _)| id != query_id) {
            self.flush();
        }
        let (_, tokens) = self.tokens.get_or_insert_with(|| (query_id.to_owned(), Vec::new()));
        tokens.push(token);
    }

    pub(super) fn flush(&mut self) {
        if let Some((query_id, tokens)) = self.tokens.take() {
            let many = ManyTokens { query_id: &query_id, tokens: &tokens };
            self.messages.push(notification("stream.tokens", many));
        }
    }
}
