//! Sessions with a long history, created as fast as possible.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::child::Child;
use crate::client::{Client, Session};
use crate::http::Conn;
use crate::rig::Rig;

/// Settings without projections and workspace context: the history is the same.
pub(super) const FAST: [&str; 4] =
    ["harness.session_tree=false", "audit.log=false", "context.tokens=0", "memory.enabled=false"];

/// A stored session.
#[derive(Clone, Debug)]
pub(super) struct StoredSession {
    pub(super) id: String,
    pub(super) turns: usize,
    /// The number of its last event.
    pub(super) last: u64,
}

impl StoredSession {
    /// Creates a session.
    pub(super) async fn create(rig: &Rig, daemon: &Child) -> Result<Self> {
        let session = Session::create(daemon.address, &rig.workspace()).await?;
        let mut stored = Self { id: session.id, turns: 0, last: 0 };
        stored.fetch(daemon).await?;
        Ok(stored)
    }

    /// Runs turns until there are this many, or until the time is up.
    pub(super) async fn grow(
        &mut self,
        rig: &Rig,
        daemon: &Child,
        turns: usize,
        limit: Duration,
    ) -> Result<()> {
        // A client that follows from an older event would mistake the end of an older turn for the
        // next.
        self.fetch(daemon).await?;
        let mut client = self.open(daemon).await?;
        let began = Instant::now();
        while self.turns < turns && began.elapsed() < limit {
            client.turn(rig.script(1, 0)).await?;
            self.turns += 1;
        }
        rig.log().await?;
        self.fetch(daemon).await?;
        Ok(())
    }

    /// Follows the session from its last event on.
    pub(super) async fn open(&self, daemon: &Child) -> Result<Client> {
        let session = Session::open(daemon.address, self.id.clone(), self.last).await?;
        Ok(Client::Harness(Box::new(session)))
    }

    /// Reads the session; returns the time in milliseconds.
    pub(super) async fn fetch(&mut self, daemon: &Child) -> Result<f64> {
        let mut conn = Conn::open(daemon.address).await?;
        let began = Instant::now();
        let body = conn.call("GET", &format!("/v1/sessions/{}", self.id), "").await?;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        let shown: Value = serde_json::from_slice(&body)?;
        let last = shown["last_event_id"].as_str().context("no last_event_id")?;
        self.last = last.parse()?;
        Ok(took)
    }
}
