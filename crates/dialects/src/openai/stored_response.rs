//! Finds responses in the journal by their ids, and reads them.

use std::sync::Arc;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::{Cursor, Item};
use serde_json::Value;

use super::decode::conversation::FRONT_END;
use super::encode::response::Response as Encoder;
use super::encode::turn::TurnReader;
use super::reply::Reply;
use super::response_id::ResponseId;
use super::serve::AppState;
use super::start::AgentRun;
use super::wire::seconds;

/// The data stored with the first event of a response.
pub(super) const RESPONSE: &str = "response";
pub(super) const INPUT: &str = "input";
/// True if the run continues without its client.
pub(super) const BACKGROUND: &str = "background";
pub(super) const STORE: &str = "store";
/// The label of a session that lists its deleted responses.
pub(super) const DELETED: &str = "openai_deleted";

impl From<&AgentRun> for ResponseId {
    fn from(run: &AgentRun) -> Self {
        Self { session: run.session.clone(), begins: run.begins }
    }
}

/// A response in the journal.
pub(super) struct StoredResponse {
    pub(super) id: ResponseId,
    pub(super) run: AgentRun,
    /// The time of the first event, in seconds.
    created: i64,
    /// The data stored with its first event.
    pub(super) data: Value,
}

/// The part of a response that was read.
pub(super) struct Current {
    pub(super) follow: Box<dyn Follower>,
    pub(super) reader: TurnReader,
    pub(super) encoder: Encoder,
}

impl StoredResponse {
    /// Finds a response. Fails if it does not exist, was deleted or was not stored.
    pub(super) async fn find(app: &AppState, id: &str) -> Result<Self, Reply> {
        let unknown = || {
            let why = format!("Response with id '{id}' not found.");
            Reply::not_found(why).code("response_not_found").param("response_id")
        };
        let parsed = ResponseId::parse(id).ok_or_else(unknown)?;
        let summary = match app.services.sessions.summary(&parsed.session).await {
            Err(Error::NotFound(_)) => return Err(unknown()),
            summary => summary?,
        };
        let is = |seq: &str| seq == parsed.begins.to_string();
        let is_deleted = summary.labels.get(DELETED).is_some_and(|list| list.split(',').any(is));
        let stored = Self::read(app, &parsed).await.map_err(|reply| match reply.status {
            404 => unknown(),
            _ => reply,
        })?;
        if is_deleted || stored.data[STORE] != true { Err(unknown()) } else { Ok(stored) }
    }

    /// Reads the first event of a response. Fails if no response starts there.
    pub(super) async fn read(app: &AppState, id: &ResponseId) -> Result<Self, Reply> {
        let unknown = || Reply::not_found("no response starts there");
        let (sessions, before) = (&app.services.sessions, Cursor::after(id.begins - 1));
        let mut follow = match sessions.follow(&id.session, before).await {
            Err(Error::Ahead(..) | Error::NotFound(_)) => return Err(unknown()),
            follow => follow?,
        };
        if follow.head() < id.begins {
            return Err(unknown());
        }
        let first = loop {
            let items = follow.next().await?.ok_or(Error::Closing)?;
            if let Some(first) = items.into_iter().next() {
                break first;
            }
        };
        let Item::Event(record) = first else { return Err(unknown()) };
        let data = front_end_data(&record).filter(|_| record.seq == id.begins);
        let (Some(data), Some(turn)) = (data, record.event.turn()) else { return Err(unknown()) };
        let turn_begins = match &record.event {
            Event::MessageAdded { .. } => id.begins,
            _ => {
                let state = sessions.view(&id.session).await?;
                state.turn(turn).map(|turn| turn.begins).ok_or_else(unknown)?
            }
        };
        let (session, turn) = (id.session.clone(), turn.clone());
        let run = AgentRun { session, turn, turn_begins, begins: id.begins };
        Ok(Self { id: id.clone(), run, created: seconds(record.at), data })
    }

    pub(super) fn encoder(&self) -> Encoder {
        let echo = self.data[RESPONSE].as_object().cloned().unwrap_or_default();
        Encoder::new(self.id.to_string(), self.created, echo)
    }

    pub(super) fn reader(&self) -> TurnReader {
        let AgentRun { session, turn, begins, .. } = self.run.clone();
        TurnReader::new(session, turn, begins)
    }

    pub(super) async fn follow(&self, app: &AppState) -> Result<Box<dyn Follower>, Reply> {
        let from = Cursor::after(self.run.turn_begins - 1);
        Ok(app.services.sessions.follow(&self.run.session, from).await?)
    }

    /// The durable part of the response.
    pub(super) async fn now(&self, app: &AppState) -> Result<Current, Reply> {
        let follow = self.follow(app).await?;
        let mut current = Current { follow, reader: self.reader(), encoder: self.encoder() };
        while current.follow.position().seq < current.follow.head() && !current.reader.is_over() {
            current.advance().await?;
        }
        Ok(current)
    }
}

impl Current {
    async fn advance(&mut self) -> Result<(), Reply> {
        for item in self.follow.next().await?.ok_or(Error::Closing)? {
            for progress in self.reader.take(&item) {
                self.encoder.take(&progress);
            }
        }
        Ok(())
    }

    pub(super) async fn run_to_end(&mut self) -> Result<(), Reply> {
        while !self.reader.is_over() {
            self.advance().await?;
        }
        Ok(())
    }
}

/// The data stored with the first event of a response.
fn front_end_data(record: &Arc<Record>) -> Option<Value> {
    let data = match &record.event {
        Event::MessageAdded { options, .. } => options.front_end_data(FRONT_END),
        Event::CallCompleted { outcome, .. } => outcome.front_end_data.get(FRONT_END),
        _ => None,
    };
    data.filter(|data| data[RESPONSE].is_object()).cloned()
}
