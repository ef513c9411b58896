//! A client of the desktop-assistant protocol: every message is a request whose answer streams.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Turn;
use crate::child::Child;
use crate::clock;
use crate::http::Conn;
use crate::received::{DESKTOP, ReceivedAnswer};
use crate::script::Script;

/// A session and its connection.
#[derive(Debug)]
pub(crate) struct Desktop {
    conn: Conn,
    session: String,
}

impl Desktop {
    /// Connects and creates a session.
    pub(crate) async fn open(daemon: &Child) -> Result<Self> {
        static NAMES: AtomicU64 = AtomicU64::new(0);
        let mut conn = Conn::open(daemon.http("jarvis")?).await?;
        let name = format!("bench-{}", NAMES.fetch_add(1, Ordering::Relaxed));
        let body = json!({ "jarvis_session_id": name }).to_string();
        let answer: Value =
            serde_json::from_slice(&conn.call("POST", "/v1/sessions", &body).await?)?;
        let session = answer["general_session_id"].as_str().context("no session")?.to_owned();
        Ok(Self { conn, session })
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let body = json!({
            "general_session_id": self.session,
            "mode": "general",
            "message": { "parts": [{ "type": "text", "text": script.to_string() }] },
            "stream": true,
        });
        let body = body.to_string();
        let sent = clock::now();
        self.conn.send("POST", "/v1/chat", &body).await?;
        let mut lines = self.conn.lines().await?;
        let mut seen = ReceivedAnswer::new(&DESKTOP);
        while lines.read(&mut self.conn, |line| seen.frame(line)).await? {}
        Ok(Turn { sent, seen })
    }
}
