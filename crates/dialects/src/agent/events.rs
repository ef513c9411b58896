//! A session's stored events as clients ask for them.

use quintet_kernel::SessionId;
use serde_json::{Value, json};

use super::dispatch::{FollowUp, Reply, refused};
use super::history::Events;
use super::request::Read;
use super::serve::AppState;
use crate::jsonrpc::Error;

impl AppState {
    pub(super) async fn events(&self, read: &Read) -> Result<Reply, Error> {
        let history = self.history(&read.session).await?;
        let mut after = read.from.unwrap_or(0);
        if let Some(since) = read.since {
            let head = self.head(&read.session).await?;
            after = after.max(history.before_moment(head, since).await.map_err(refused)?);
        }
        let found = history.after(after, read).await.map_err(refused)?;
        Ok(page(&found).into())
    }

    pub(super) async fn backwards(&self, read: &Read) -> Result<Reply, Error> {
        let history = self.history(&read.session).await?;
        let (events, more) = history.before(read).await.map_err(refused)?;
        let oldest = events.last().map(|event| event["id"].clone());
        let head = match read.from {
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
        let history = self.history(&read.session).await?;
        let found = history.after(read.from.unwrap_or(0), read).await.map_err(refused)?;
        Ok(Reply { result: page(&found), then: FollowUp::Continue(Box::new(found)) })
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
