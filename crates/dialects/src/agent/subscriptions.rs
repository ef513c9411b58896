//! The sessions whose events are sent on a connection.
//!
//! A JSON-RPC client is sent the events of the sessions that it used. A legacy client is bound to the
//! session that it created or resumed last and is sent the events of that one alone; until then those of
//! all sessions.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, Error, Follower};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use serde_json::{Value, json};

use super::dispatch::FollowUp;
use super::encode::encode;
use super::serve::AppState;
use super::session_context::SessionContext;
use super::shown_questions::ShownQuestions;
use super::wire::{Framing, Notification};
use crate::change_feed::{Change, Changes, Subscription};
use crate::jsonrpc;

/// The most sessions that are checked for new events when a subscription to all begins.
const RECENT_LIMIT: usize = 256;

/// The sessions whose events are sent on a connection.
pub(super) struct Subscriptions {
    app: AppState,
    followed: HashMap<SessionId, FollowedSession>,
    /// Incremented each time that following a session starts, to recognize deliveries of an earlier
    /// follower.
    generation: u64,
    deliveries: FuturesUnordered<BoxFuture<'static, Delivery>>,
    /// The only session that a legacy client is sent events of.
    bound: Option<SessionId>,
    /// Changes of all sessions; `None` unless the client is sent the events of all.
    all_changes: Option<Subscription>,
    /// The time from which a legacy client is sent the events of all sessions.
    since: Time,
    shown: ShownQuestions,
}

/// A session that is followed for the client.
struct FollowedSession {
    generation: u64,
    context: SessionContext,
    position: Cursor,
}

/// A follower and its next items.
pub(super) type Delivery = (SessionId, u64, Box<dyn Follower>, Result<Option<Vec<Item>>, Error>);

/// Something new for the client.
pub(super) enum Update {
    /// Items of a session that is followed.
    Items(Delivery),
    /// Sessions that may not be followed yet have changed.
    Changed(Changes),
}

impl Subscriptions {
    pub(super) fn new(app: AppState) -> Self {
        let since = app.now();
        Self {
            app,
            followed: HashMap::new(),
            generation: 0,
            deliveries: FuturesUnordered::new(),
            bound: None,
            all_changes: None,
            since,
            shown: ShownQuestions::default(),
        }
    }

    /// The questions that the client was shown on this connection.
    pub(super) fn shown(&self) -> &ShownQuestions {
        &self.shown
    }

    /// Records the questions in a result that the client is sent.
    pub(super) fn note_result(&mut self, outcome: &Result<Value, jsonrpc::Error>) {
        if let Ok(result) = outcome {
            self.shown.add_from_result(result);
        }
    }

    /// Waits for something new. Cancel-safe.
    pub(super) async fn next(&mut self) -> Update {
        tokio::select! {
            Some(delivery) = self.deliveries.next() => Update::Items(delivery),
            changes = changes(self.all_changes.as_ref()) => Update::Changed(changes),
        }
    }

    /// Sends the events of all sessions since the client connected.
    pub(super) async fn subscribe_to_all(&mut self) {
        if self.bound.is_none() && self.all_changes.is_none() {
            self.all_changes = Some(self.app.services.change_feed.subscribe());
            self.discover_recent().await;
        }
    }

    /// Applies the follow-up of a request, after its response was sent.
    pub(super) async fn follow_up(&mut self, framing: Framing, then: FollowUp) {
        match then {
            FollowUp::Nothing => {}
            FollowUp::Unsubscribe(session) => {
                self.followed.remove(&session);
            }
            FollowUp::Bind(session, from) => {
                if framing == Framing::Legacy {
                    self.bind(&session);
                }
                self.subscribe(session, from).await;
            }
            FollowUp::Subscribe(session, from) => self.subscribe(session, from).await,
            FollowUp::Continue(events) => {
                let (session, cursor) = (events.context.session.clone(), events.cursor());
                let ahead = self.followed.get(&session).is_some_and(|one| one.position >= cursor);
                if !ahead && self.may_follow(&session) {
                    self.start_following(session, events.context, cursor).await;
                }
            }
        }
    }

    fn bind(&mut self, session: &SessionId) {
        self.all_changes = None;
        self.followed.retain(|followed, _| followed == session);
        self.bound = Some(session.clone());
    }

    fn may_follow(&self, session: &SessionId) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound == session)
    }

    /// Follows a session from an event on, unless it is followed already.
    async fn subscribe(&mut self, session: SessionId, from: Seq) {
        if self.followed.contains_key(&session) || !self.may_follow(&session) {
            return;
        }
        let context = match self.app.history(&session).await {
            Ok(history) => history.context(from).await.ok(),
            Err(_) => None,
        };
        // A session that was deleted meanwhile has no events.
        if let Some(context) = context {
            let cursor = Cursor { seq: from, offset: context.written };
            self.start_following(session, context, cursor).await;
        }
    }

    async fn start_following(&mut self, session: SessionId, context: SessionContext, from: Cursor) {
        let Ok(follow) = self.app.services.sessions.follow(&session, from).await else { return };
        self.generation += 1;
        let followed = FollowedSession { generation: self.generation, context, position: from };
        self.followed.insert(session.clone(), followed);
        self.deliveries.push(next_delivery(session, self.generation, follow));
    }

    /// Follows sessions that changed, if the client is sent the events of all.
    pub(super) async fn changed(&mut self, changes: Changes) {
        for (session, change) in changes {
            match change {
                Change::Head(head) => self.discover(session, head).await,
                // The follower of the session ends with an error.
                Change::Erased => {}
            }
        }
    }

    async fn discover_recent(&mut self) {
        let recent =
            self.app.services.sessions.recent(None, RECENT_LIMIT).await.unwrap_or_default();
        let since = self.since;
        // Text in flight does not update the summary, so an open turn may look older.
        for summary in recent.into_iter().filter(|summary| summary.open || summary.updated >= since)
        {
            self.discover(summary.id, summary.head).await;
        }
    }

    async fn discover(&mut self, session: SessionId, head: Seq) {
        if self.followed.contains_key(&session) || self.all_changes.is_none() {
            return;
        }
        let from = match self.app.history(&session).await {
            Ok(history) => history.before_time(head, self.since).await.ok(),
            Err(_) => None,
        };
        if let Some(from) = from {
            self.subscribe(session, from).await;
        }
    }

    /// The frames for a delivery; none if the session is no longer followed by this follower.
    pub(super) fn frames(&mut self, framing: Framing, delivery: Delivery) -> Vec<String> {
        let (session, generation, follow, items) = delivery;
        let Some(followed) =
            self.followed.get_mut(&session).filter(|one| one.generation == generation)
        else {
            return Vec::new();
        };
        match items {
            Ok(Some(items)) => {
                items.iter().for_each(|item| self.shown.add_from_item(item));
                let context = &mut followed.context;
                let frames = items.iter().flat_map(|item| encode(context, framing, item)).collect();
                followed.position = follow.position();
                self.deliveries.push(next_delivery(session, generation, follow));
                frames
            }
            Ok(None) => {
                self.followed.remove(&session);
                Vec::new()
            }
            Err(error) => {
                self.followed.remove(&session);
                self.since = self.app.now();
                let status = match error {
                    Error::NotFound(_) => "deleted",
                    _ => "unavailable",
                };
                let notification =
                    Notification::both("session.status", json!({ "status": status }));
                notification
                    .frame(framing, Some(session.as_str()), self.since)
                    .into_iter()
                    .collect()
            }
        }
    }
}

/// The next changes; waits for ever without a subscription.
async fn changes(all_changes: Option<&Subscription>) -> Changes {
    let Some(all_changes) = all_changes else { return std::future::pending().await };
    all_changes.changed().await;
    all_changes.take()
}

fn next_delivery(
    session: SessionId,
    generation: u64,
    mut follow: Box<dyn Follower>,
) -> BoxFuture<'static, Delivery> {
    Box::pin(async move {
        let items = follow.next().await;
        (session, generation, follow, items)
    })
}
