//! A client of the computer-use protocol.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use memchr::memmem;
use serde_json::json;

use super::Turn;
use super::websocket::WebSocket;
use crate::child::Child;
use crate::received::COMPUTER;
use crate::script::Script;

/// A user's connection with one conversation.
#[derive(Debug)]
pub(crate) struct Computer {
    socket: WebSocket,
    conversation: String,
}

impl Computer {
    /// Connects and waits until the daemon has sent its tools.
    pub(crate) async fn open(daemon: &Child) -> Result<Self> {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        let name = NAMES.fetch_add(1, Ordering::Relaxed);
        let url = format!("ws://{}/ws", daemon.http("windie")?);
        let mut socket = WebSocket::open(&url).await?;
        let handshake = json!({ "type": "handshake", "user_id": format!("bench{name}") });
        socket.send(handshake.to_string()).await?;
        while memmem::find(socket.next().await?.as_bytes(), b"remote-tool-catalog").is_none() {}
        Ok(Self { socket, conversation: format!("c{name}") })
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let query = json!({
            "id": format!("{}_{}", self.conversation, script.id),
            "type": "query",
            "payload": { "text": script.to_string(), "conversation_ref": self.conversation },
            "user_id": "bench",
            "timestamp": "2026-01-01T00:00:00Z",
        });
        self.socket.turn(query.to_string(), &COMPUTER).await
    }
}
