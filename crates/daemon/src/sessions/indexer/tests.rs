//! Tests that the search index misses and duplicates nothing, and that erased sessions disappear.

use quintet_kernel::event::{Event, NewSession, Record};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::{Channel, FinishReason, Usage};
use quintet_kernel::port::{Batch, Leases as _, SessionQuery, SessionSearch as _};
use quintet_kernel::{MessageId, StepId, TurnId};
use quintet_stores::memory::MemoryStore;
use serde_json::json;
use tempfile::TempDir;

use super::*;

struct World {
    folder: TempDir,
    store: MemoryStore,
    indexer: Indexer,
}

impl World {
    async fn new() -> Self {
        let (folder, store) = (TempDir::new().unwrap(), MemoryStore::new());
        let indexer = indexer(&folder, &store).await;
        Self { folder, store, indexer }
    }

    /// Restarts the daemon.
    async fn restart(&mut self) {
        self.indexer = indexer(&self.folder, &self.store).await;
    }

    async fn append(&self, id: &str, events: Vec<Event>) {
        let session = session(id);
        let head = Journal::head(&self.store, &session).await.unwrap().unwrap_or(0);
        let lease = self.store.acquire(&session).await.unwrap();
        let batch = batch(id, head, None, events);
        self.store.append(&lease, head, batch).await.unwrap();
    }

    async fn fork(&self, parent: &str, at: Seq, id: &str, events: Vec<Event>) {
        let from = Fork { parent: session(parent), at };
        let lease = self.store.acquire(&session(id)).await.unwrap();
        let batch = batch(id, at, Some(from.clone()), events);
        self.store.fork(&lease, &from, batch).await.unwrap();
    }

    async fn update(&mut self, id: &str) {
        self.indexer.update(&session(id), Change::Head(0)).await.unwrap();
    }

    /// The results, as `session.seq`, sorted.
    async fn places(&self, text: &str) -> Vec<String> {
        let query = SessionQuery { text: text.into(), limit: None };
        let hits = self.indexer.index.search(query).await.unwrap().hits;
        let mut places: Vec<_> =
            hits.iter().map(|hit| format!("{}.{}", hit.session, hit.seq)).collect();
        places.sort_unstable();
        places
    }
}

async fn indexer(folder: &TempDir, store: &MemoryStore) -> Indexer {
    let index = MessageIndex::new(folder.path().join("search.db"), None);
    Indexer::open(index, Arc::new(store.clone()), Arc::new(store.clone())).await.unwrap()
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

fn batch(id: &str, head: Seq, forked: Option<Fork>, events: Vec<Event>) -> Batch {
    let at = Time::from_micros(5);
    let summary = json!({
        "id": id, "created": 0, "updated": 5, "status": "active", "workspace": "/work",
        "labels": {}, "last_turn": null, "error": null, "open": false, "title": "Tea",
    });
    let mut summary: SessionSummary = serde_json::from_value(summary).unwrap();
    (summary.forked, summary.head) = (forked, head + events.len() as u64);
    let record = |(event, seq)| Arc::new(Record { seq, at, event });
    let records = events.into_iter().zip(head + 1..).map(record).collect();
    Batch { records, summary }
}

fn created() -> Event {
    Event::SessionCreated(NewSession::default())
}

fn user_message(text: &str) -> Event {
    Event::MessageAdded {
        message: MessageId::parse("m").unwrap(),
        turn: TurnId::parse("t").unwrap(),
        role: Role::User,
        parts: vec![Part::Text(text.into())],
        options: Default::default(),
        nth: 0,
    }
}

fn model_text(text: &str) -> Event {
    Event::TextAppended {
        turn: TurnId::parse("t").unwrap(),
        step: StepId::parse("s").unwrap(),
        offset: 0,
        channel: Channel::Text,
        text: text.into(),
        pieces: Vec::new(),
    }
}

fn completed() -> Event {
    Event::ModelCompleted {
        turn: TurnId::parse("t").unwrap(),
        step: StepId::parse("s").unwrap(),
        message: MessageId::parse("m2"),
        finish: FinishReason::Stop,
        calls: Vec::new(),
        usage: Usage::default(),
        sealed: Vec::new(),
        by: None,
    }
}

#[tokio::test]
async fn an_answer_is_found_once_it_is_complete() {
    let mut world = World::new().await;
    world.append("one", vec![created(), user_message("green tea?"), model_text("oolong ")]).await;
    world.update("one").await;
    assert_eq!(
        (world.places("tea").await, world.places("oolong").await.len()),
        (vec!["one.2".into()], 0)
    );
    world.append("one", vec![model_text("tea")]).await;
    world.update("one").await;
    for restarts in [false, true] {
        if restarts {
            // Buffered text is read again.
            world.restart().await;
        }
        assert!(!world.indexer.has(&session("one"), 4).await);
    }
    world.append("one", vec![completed()]).await;
    world.update("one").await;
    assert_eq!(world.places("oolong tea").await, ["one.2", "one.5"]);
    assert!(world.indexer.has(&session("one"), 5).await);
    world.update("one").await;
    assert_eq!(world.places("oolong").await, ["one.5"]);
}

#[tokio::test]
async fn long_sessions_are_read_page_by_page() {
    let mut world = World::new().await;
    let events: Vec<_> = (0..2000).map(|n| user_message(&format!("word{n}"))).collect();
    world.append("one", [vec![created()], events].concat()).await;
    world.update("one").await;
    for (word, place) in [("word0", "one.2"), ("word1234", "one.1236"), ("word1999", "one.2001")] {
        assert_eq!(world.places(word).await, [place]);
    }
    world.indexer.checkpoint(Time::from_micros(9)).await.unwrap();
    world.restart().await;
    assert_eq!(world.indexer.since(), Time::from_micros(9));
}

#[tokio::test]
async fn erased_sessions_disappear_and_their_forks_stay_whole() {
    let mut world = World::new().await;
    world.append("one", vec![created(), user_message("shared tea")]).await;
    let forked = Event::Forked { parent: session("one"), at: 2 };
    world.fork("one", 2, "two", vec![forked, user_message("tea of its own")]).await;
    world.append("one", vec![user_message("later tea")]).await;
    // The order in which they are read does not matter.
    world.update("two").await;
    world.update("one").await;
    assert_eq!(world.places("tea").await, ["one.2", "one.3", "two.4"]);
    let lease = world.store.acquire(&session("one")).await.unwrap();
    world.store.erase(&lease).await.unwrap();
    world.indexer.update(&session("one"), Change::Erased).await.unwrap();
    assert_eq!(world.places("tea").await, ["two.2", "two.4"]);
    assert_eq!(world.indexer.erased().await.unwrap(), []);
    // A missed deletion is noticed when the session is read.
    let lease = world.store.acquire(&session("two")).await.unwrap();
    world.store.erase(&lease).await.unwrap();
    world.update("two").await;
    assert_eq!(world.places("tea").await, [""; 0]);
}

#[tokio::test]
async fn sessions_erased_while_the_indexer_was_down_are_removed_at_start() {
    let mut world = World::new().await;
    world.append("one", vec![created(), user_message("secret tea")]).await;
    world.append("two", vec![created(), user_message("other tea")]).await;
    world.update("one").await;
    world.update("two").await;
    let lease = world.store.acquire(&session("one")).await.unwrap();
    world.store.erase(&lease).await.unwrap();
    crate::sessions::remove_erased(&world.indexer.index, &world.store).await.unwrap();
    assert_eq!(world.places("tea").await, ["two.2"]);
}

#[tokio::test]
async fn a_restored_journal_is_indexed_again() {
    let mut world = World::new().await;
    world.append("one", vec![created(), user_message("old tea"), user_message("new tea")]).await;
    world.update("one").await;
    world.store = MemoryStore::new();
    world.append("one", vec![created(), user_message("old tea")]).await;
    world.restart().await;
    world.update("one").await;
    assert_eq!(world.places("tea").await, ["one.2"]);
}
