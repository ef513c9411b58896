//! Which sessions count, and what is read of them again.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use quintet_kernel::event::Seq;
use quintet_kernel::model::{ModelInfo, Prompt};
use quintet_kernel::port::{
    BoxFuture, Error, Follower, ModelStream, Models, Preferences, Sessions,
};
use quintet_kernel::{Cursor, Item, SessionId, SessionSummary, State};
use quintet_stores::memory::MemoryStore;

use super::super::{FIGURES_SPACE, Range, Sources, UsageCache};
use super::*;

impl Models for Prices {
    fn stream(&self, _prompt: Prompt) -> Box<dyn ModelStream> {
        unreachable!("no model is called")
    }

    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        unreachable!("no model is listed")
    }
}

/// Sessions that each have one model call.
#[derive(Default)]
struct Stored {
    ids: Mutex<Vec<SessionId>>,
    /// How often a journal was read.
    reads: AtomicUsize,
}

struct Reader(Cursor);

impl Follower for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        let record = |seq: Seq, event: &str| {
            let event = codec::decode(codec::VERSION, event.as_bytes()).unwrap();
            Item::Event(Arc::new(Record { seq, at: Time::from_micros(1_000_000), event }))
        };
        self.0 = Cursor::after(2);
        Box::pin(async move { Ok(Some(vec![record(1, STARTED), record(2, COMPLETED)])) })
    }

    fn head(&self) -> Seq {
        2
    }

    fn position(&self) -> Cursor {
        self.0
    }
}

fn summary(id: &SessionId) -> SessionSummary {
    let at = Time::from_micros(1_000_000);
    let summary = json!({
        "id": id, "created": at, "updated": at, "head": 2, "status": "active", "workspace": "/w",
        "labels": {}, "last_turn": null, "error": null, "open": false,
    });
    serde_json::from_value(summary).unwrap()
}

impl Sessions for Stored {
    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unreachable!("usage reads events")
    }

    fn follow(
        &self,
        _: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(Box::new(Reader(from)) as Box<dyn Follower>) })
    }

    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        let is_here = self.ids.lock().unwrap().contains(session);
        let found = is_here.then(|| summary(session));
        let found = found.ok_or_else(|| Error::NotFound(session.clone()));
        Box::pin(async move { found })
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("usage lists sessions by their use")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let found = self.ids.lock().unwrap().iter().take(limit).map(summary).collect();
        Box::pin(async move { Ok(found) })
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("usage does not look for forks")
    }
}

/// The number of calls that a daemon that just started counts, and how many journals it reads for that.
async fn counted(sessions: &Stored, store: &MemoryStore) -> (Value, usize) {
    counted_by(&UsageCache::default(), sessions, store).await
}

async fn counted_by(usage: &UsageCache, sessions: &Stored, store: &MemoryStore) -> (Value, usize) {
    let before = sessions.reads.load(Ordering::Relaxed);
    let sources = Sources { archive: sessions, sessions, models: &Prices, store };
    let range = Range::parse("since=1&step=60&steps=1").unwrap();
    let shown = usage.overall(&sources, range).await.unwrap();
    (shown["whole"]["calls"].clone(), sessions.reads.load(Ordering::Relaxed) - before)
}

#[tokio::test]
async fn every_session_counts_and_is_read_once() {
    let id = |n: u32| SessionId::parse(&format!("s{n}")).unwrap();
    let (sessions, store) = (Stored::default(), MemoryStore::default());
    *sessions.ids.lock().unwrap() = (0..1_000).map(id).collect();
    assert_eq!(counted(&sessions, &store).await, (json!(1_000), 1_000));
    sessions.ids.lock().unwrap().push(id(1_000));
    assert_eq!(counted(&sessions, &store).await, (json!(1_001), 1));
}

#[tokio::test]
async fn nothing_is_kept_of_a_session_that_was_erased() {
    let id = |name: &str| SessionId::parse(name).unwrap();
    let (sessions, store) = (Stored::default(), MemoryStore::default());
    *sessions.ids.lock().unwrap() = vec![id("a"), id("b"), id("c")];
    let usage = UsageCache::default();
    counted_by(&usage, &sessions, &store).await;
    sessions.ids.lock().unwrap().pop();
    assert_eq!(counted_by(&usage, &sessions, &store).await, (json!(2), 0));
    let mut kept = store.names(FIGURES_SPACE).await.unwrap();
    kept.sort_unstable();
    assert_eq!(kept, ["a", "b"]);
    // A daemon that was not running when a session was erased finds out.
    sessions.ids.lock().unwrap().pop();
    assert_eq!(counted(&sessions, &store).await, (json!(1), 0));
    assert_eq!(store.names(FIGURES_SPACE).await.unwrap(), ["a"]);
}
