//! A session's stored events as clients ask for them.

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::{Value, json};

use super::dispatch::{FollowUp, Reply, refused};
use super::event_id::{EventRef, event_id};
use super::history::Events;
use super::request::Read;
use super::serve::AppState;
use crate::jsonrpc::{Error, INVALID_PARAMS};

impl AppState {
    pub(super) async fn events(&self, read: &Read) -> Result<Reply, Error> {
        let mut after = self.start_of(read).await?;
        let history = self.history(&read.session).await?;
        if let Some(since) = read.since {
            let head = self.head(&read.session).await?;
            after = after.max(history.before_moment(head, since).await.map_err(refused)?);
        }
        let found = history.after(after, read).await.map_err(refused)?;
        Ok(page(&found).into())
    }

    pub(super) async fn backwards(&self, read: &Read) -> Result<Reply, Error> {
        self.start_of(read).await?;
        let history = self.history(&read.session).await?;
        let (events, more) = history.before(read).await.map_err(refused)?;
        let oldest = events.last().map(|event| event["id"].clone());
        let head = match &read.from {
            None => events.first().map(|event| event["id"].clone()),
            Some(_) => None,
        };
        let mut shown = json!({ "events": events, "hasMore": more, "oldestEventId": oldest });
        if let Some(head) = head {
            shown["headEventId"] = head;
        }
        Ok(shown.into())
    }

    pub(super) async fn sync(&self, read: &Read) -> Result<Reply, Error> {
        let start = self.start_of(read).await?;
        let history = self.history(&read.session).await?;
        let found = history.after(start, read).await.map_err(refused)?;
        Ok(Reply { result: page(&found), then: FollowUp::Continue(Box::new(found)) })
    }

    /// The event from which on a client reads; 0 if it names none.
    async fn start_of(&self, read: &Read) -> Result<Seq, Error> {
        match &read.from {
            Some(event) => self.sequence_in(&read.session, event).await,
            None => Ok(0),
        }
    }

    /// The number of an event in a session. Fails if the event is of a session that this one was not forked
    /// from, or came after the fork.
    pub(super) async fn sequence_in(
        &self,
        session: &SessionId,
        event: &EventRef,
    ) -> Result<Seq, Error> {
        let Some(other) = &event.other else { return Ok(event.seq) };
        let mut summary = self.services.sessions.summary(session).await.map_err(refused)?;
        while let Some(fork) = summary.forked.filter(|fork| event.seq <= fork.at) {
            if fork.parent == *other {
                return Ok(event.seq);
            }
            let Ok(parent) = self.services.sessions.summary(&fork.parent).await else { break };
            summary = parent;
        }
        let message = format!("{} is not an event of {session}", event_id(other, event.seq));
        Err(Error::new(INVALID_PARAMS, message))
    }

    pub(super) async fn newest(&self, session: SessionId) -> Result<Reply, Error> {
        let history = self.history(&session).await?;
        let read = Read { limit: Some(1), original: true, ..Read::all(session.clone()) };
        let (events, _) = history.before(&read).await.map_err(refused)?;
        let newest = events.into_iter().next().unwrap_or_default();
        let (id, session) = (newest["id"].clone(), session.as_str());
        Ok(json!({ "sessionId": session, "headEventId": id, "headEvent": newest }).into())
    }
}

fn page(found: &Events) -> Value {
    let last = found.events.last();
    json!({
        "events": found.events,
        "hasMore": found.more,
        "lastSequence": found.upto,
        "nextCursor": last.map(|event| event["id"].clone()),
    })
}
