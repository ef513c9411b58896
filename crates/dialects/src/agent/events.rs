//! Requests for a session's stored events.

use quintet_kernel::SessionId;
use quintet_kernel::event::Seq;
use serde_json::{Value, json};

use super::dispatch::{FollowUp, Reply, rpc_error};
use super::event_id::{EventRef, event_id};
use super::history::Events;
use super::request::EventQuery;
use super::serve::AppState;
use crate::jsonrpc::{Error, INVALID_PARAMS};

impl AppState {
    pub(super) async fn events(&self, query: &EventQuery) -> Result<Reply, Error> {
        let mut after = self.start_of(query).await?;
        let history = self.history(&query.session).await?;
        if let Some(since) = query.since {
            let head = self.head(&query.session).await?;
            after = after.max(history.before_time(head, since).await.map_err(rpc_error)?);
        }
        let found = history.after(after, query).await.map_err(rpc_error)?;
        Ok(page(&found).into())
    }

    pub(super) async fn backwards(&self, query: &EventQuery) -> Result<Reply, Error> {
        self.start_of(query).await?;
        let history = self.history(&query.session).await?;
        let (events, more) = history.before(query).await.map_err(rpc_error)?;
        let oldest = events.last().map(|event| event["id"].clone());
        let head = match &query.from {
            None => events.first().map(|event| event["id"].clone()),
            Some(_) => None,
        };
        let mut shown = json!({ "events": events, "hasMore": more, "oldestEventId": oldest });
        if let Some(head) = head {
            shown["headEventId"] = head;
        }
        Ok(shown.into())
    }

    pub(super) async fn sync(&self, query: &EventQuery) -> Result<Reply, Error> {
        let start = self.start_of(query).await?;
        let history = self.history(&query.session).await?;
        let found = history.after(start, query).await.map_err(rpc_error)?;
        Ok(Reply { result: page(&found), then: FollowUp::Continue(Box::new(found)) })
    }

    /// The event after which to read; 0 if the request has none.
    async fn start_of(&self, query: &EventQuery) -> Result<Seq, Error> {
        match &query.from {
            Some(event) => self.sequence_in(&query.session, event).await,
            None => Ok(0),
        }
    }

    /// The sequence of an event in a session. Fails if the event belongs to a session that this one was not
    /// forked from, or came after the fork.
    pub(super) async fn sequence_in(
        &self,
        session: &SessionId,
        event: &EventRef,
    ) -> Result<Seq, Error> {
        let Some(other) = &event.other else { return Ok(event.seq) };
        let mut summary = self.services.sessions.summary(session).await.map_err(rpc_error)?;
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
        let query =
            EventQuery { limit: Some(1), original: true, ..EventQuery::all(session.clone()) };
        let (events, _) = history.before(&query).await.map_err(rpc_error)?;
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
