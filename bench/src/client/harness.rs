//! A client of the harness protocol.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{ANSWER_TIMEOUT, Turn};
use crate::clock;
use crate::http::{Conn, Lines};
use crate::received::{HARNESS, ReceivedAnswer};
use crate::script::Script;

/// A session of Quintet and its follower.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    commands: Conn,
    follower: Follower,
}

impl Session {
    /// Creates a session and follows it.
    pub(crate) async fn create(address: SocketAddr, workspace: &Path) -> Result<Self> {
        let mut commands = Conn::open(address).await?;
        let id = create(&mut commands, workspace).await?;
        Self::open(address, id, 0).await
    }

    /// Follows an existing session from an event on.
    pub(crate) async fn open(address: SocketAddr, id: String, after: u64) -> Result<Self> {
        let commands = Conn::open(address).await?;
        let follower = Follower::open(address, &id, after).await?;
        Ok(Self { id, commands, follower })
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let body = message(script);
        let path = format!("/v1/sessions/{}/messages", self.id);
        let sent = clock::now();
        self.commands.send("POST", &path, &body).await?;
        let (accepted, seen) = tokio::join!(self.commands.answer(), self.follower.turn());
        accepted?;
        Ok(Turn { sent, seen: seen? })
    }
}

/// A follower of a session.
#[derive(Debug)]
pub(crate) struct Follower {
    conn: Conn,
    lines: Lines,
}

impl Follower {
    /// Follows a session from an event on.
    pub(crate) async fn open(address: SocketAddr, id: &str, after: u64) -> Result<Self> {
        let mut conn = Conn::open(address).await?;
        conn.send("GET", &format!("/v1/sessions/{id}/events?after={after}"), "").await?;
        let lines = timeout(ANSWER_TIMEOUT, conn.lines()).await.context("no stream")??;
        Ok(Self { conn, lines })
    }

    /// Reads until a turn has ended.
    pub(crate) async fn turn(&mut self) -> Result<ReceivedAnswer> {
        let mut seen = ReceivedAnswer::new(&HARNESS);
        while !seen.is_over() {
            self.lines.read(&mut self.conn, |line| seen.frame(line)).await?;
        }
        Ok(seen)
    }
}

/// Creates a session; returns its id.
pub(crate) async fn create(conn: &mut Conn, workspace: &Path) -> Result<String> {
    let body = json!({ "workspace_path": workspace }).to_string();
    let answer = timeout(ANSWER_TIMEOUT, conn.call("POST", "/v1/sessions", &body)).await??;
    let answer: Value = serde_json::from_slice(&answer)?;
    Ok(answer["session_id"].as_str().context("no session_id")?.to_owned())
}

/// Sends a message without waiting for the answer.
pub(crate) async fn send(conn: &mut Conn, id: &str, script: Script) -> Result<()> {
    let path = format!("/v1/sessions/{id}/messages");
    timeout(ANSWER_TIMEOUT, conn.call("POST", &path, &message(script))).await??;
    Ok(())
}

fn message(script: Script) -> String {
    let part = json!({ "type": "text", "text": script.to_string() });
    json!({ "role": "user", "parts": [part], "auto_run": true }).to_string()
}
