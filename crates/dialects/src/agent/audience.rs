//! The sessions that a connection is told of.
//!
//! A client of the text is told of the sessions that it has to do with. One of the original server is
//! bound to the session that it created or resumed last, and is told of that one alone; until then it
//! is told of all.

use std::collections::HashMap;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, Error, Follow};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use serde_json::{Value, json};

use super::book::Book;
use super::carry::Then;
use super::encode::encode;
use super::serve::Desk;
use super::shown::Shown;
use super::wire::{Manner, News};
use crate::change_feed::{Change, Changes, Subscription};
use crate::jsonrpc;

/// How many sessions are looked at where it is not known which have something new.
const LOOKED_AT: usize = 256;

/// The sessions that a connection is told of.
pub(super) struct Audience {
    desk: Desk,
    watched: HashMap<SessionId, Watched>,
    /// Counts the times that telling of a session began anew.
    round: u64,
    heard: FuturesUnordered<BoxFuture<'static, Heard>>,
    /// The only session that a client of the original server is told of.
    bound: Option<SessionId>,
    /// Which sessions changed; nothing where all of them are of no interest.
    everywhere: Option<Subscription>,
    /// From when on such a client is told of all sessions.
    since: Time,
    shown: Shown,
}

/// A session that the client is told of.
struct Watched {
    round: u64,
    book: Book,
    position: Cursor,
}

/// A follower and what it brought.
pub(super) type Heard = (SessionId, u64, Box<dyn Follow>, Result<Option<Vec<Item>>, Error>);

/// What happened.
pub(super) enum Happening {
    /// In a session that is followed.
    Heard(Heard),
    /// In any sessions.
    Changed(Changes),
}

impl Audience {
    pub(super) fn new(desk: Desk) -> Self {
        let since = desk.now();
        Self {
            desk,
            watched: HashMap::new(),
            round: 0,
            heard: FuturesUnordered::new(),
            bound: None,
            everywhere: None,
            since,
            shown: Shown::default(),
        }
    }

    /// The questions that the client was shown.
    pub(super) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The client gets a result.
    pub(super) fn given(&mut self, outcome: &Result<Value, jsonrpc::Error>) {
        if let Ok(result) = outcome {
            self.shown.given(result);
        }
    }

    /// What happens next. Nothing is lost if nobody waits for it to the end.
    pub(super) async fn next(&mut self) -> Happening {
        tokio::select! {
            Some(heard) = self.heard.next() => Happening::Heard(heard),
            changes = changes(self.everywhere.as_ref()) => Happening::Changed(changes),
        }
    }

    /// From now on, and from the connection's beginning, all sessions are told of.
    pub(super) async fn hear_all(&mut self) {
        if self.bound.is_none() && self.everywhere.is_none() {
            self.everywhere = Some(self.desk.ports.changes.subscribe());
            self.look_around().await;
        }
    }

    /// Does what is to be done once a request is answered.
    pub(super) async fn follow_up(&mut self, manner: Manner, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Leave(session) => {
                self.watched.remove(&session);
            }
            Then::Bind(session, from) => {
                if manner == Manner::Native {
                    self.bind(&session);
                }
                self.watch(session, from).await;
            }
            Then::Watch(session, from) => self.watch(session, from).await,
            Then::GoOn(events) => {
                let (session, cursor) = (events.book.session.clone(), events.cursor());
                let ahead = self.watched.get(&session).is_some_and(|one| one.position >= cursor);
                if !ahead && self.may_hear(&session) {
                    self.begin(session, events.book, cursor).await;
                }
            }
        }
    }

    fn bind(&mut self, session: &SessionId) {
        self.everywhere = None;
        self.watched.retain(|watched, _| watched == session);
        self.bound = Some(session.clone());
    }

    fn may_hear(&self, session: &SessionId) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound == session)
    }

    /// Tells of a session from an event on, unless it is told of already.
    async fn watch(&mut self, session: SessionId, from: Seq) {
        if self.watched.contains_key(&session) || !self.may_hear(&session) {
            return;
        }
        let book = match self.desk.history(&session).await {
            Ok(history) => history.book(from).await.ok(),
            Err(_) => None,
        };
        // A session that is gone again has nothing to tell.
        if let Some(book) = book {
            let cursor = Cursor { seq: from, offset: book.written };
            self.begin(session, book, cursor).await;
        }
    }

    async fn begin(&mut self, session: SessionId, book: Book, from: Cursor) {
        let Ok(follow) = self.desk.ports.sessions.follow(&session, from).await else { return };
        self.round += 1;
        let watched = Watched { round: self.round, book, position: from };
        self.watched.insert(session.clone(), watched);
        self.heard.push(listen(session, self.round, follow));
    }

    /// Something happened in sessions that may not be followed yet.
    pub(super) async fn changed(&mut self, changes: Changes) {
        for (session, change) in changes {
            match change {
                Change::Head(head) => self.discover(session, head).await,
                // Those who follow it hear of that from the session itself.
                Change::Erased => {}
            }
        }
    }

    async fn look_around(&mut self) {
        let recent = self.desk.ports.branches.recent(None, LOOKED_AT).await.unwrap_or_default();
        let since = self.since;
        for card in recent.into_iter().filter(|card| card.updated >= since) {
            self.discover(card.id, card.head).await;
        }
    }

    async fn discover(&mut self, session: SessionId, head: Seq) {
        if self.watched.contains_key(&session) || self.everywhere.is_none() {
            return;
        }
        let from = match self.desk.history(&session).await {
            Ok(history) => history.before_moment(head, self.since).await.ok(),
            Err(_) => None,
        };
        if let Some(from) = from {
            self.watch(session, from).await;
        }
    }

    /// The frames that tell what was heard. It may have begun anew, or ended, meanwhile.
    pub(super) fn told(&mut self, manner: Manner, heard: Heard) -> Vec<String> {
        let (session, round, follow, items) = heard;
        let Some(watched) = self.watched.get_mut(&session).filter(|one| one.round == round) else {
            return Vec::new();
        };
        match items {
            Ok(Some(items)) => {
                items.iter().for_each(|item| self.shown.told(item));
                let book = &mut watched.book;
                let frames = items.iter().flat_map(|item| encode(book, manner, item)).collect();
                watched.position = follow.position();
                self.heard.push(listen(session, round, follow));
                frames
            }
            Ok(None) => {
                self.watched.remove(&session);
                Vec::new()
            }
            Err(error) => {
                self.watched.remove(&session);
                self.since = self.desk.now();
                let status = match error {
                    Error::NotFound(_) => "deleted",
                    _ => "unavailable",
                };
                let news = News::both("session.status", json!({ "status": status }));
                news.frame(manner, Some(session.as_str()), self.since).into_iter().collect()
            }
        }
    }
}

/// The next changes; never, where nobody wants them.
async fn changes(everywhere: Option<&Subscription>) -> Changes {
    let Some(everywhere) = everywhere else { return std::future::pending().await };
    everywhere.changed().await;
    everywhere.take()
}

fn listen(
    session: SessionId,
    round: u64,
    mut follow: Box<dyn Follow>,
) -> BoxFuture<'static, Heard> {
    Box::pin(async move {
        let items = follow.next().await;
        (session, round, follow, items)
    })
}
