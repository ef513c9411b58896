//! Tests of storage failures: the session continues from what is stored.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quintet_kernel::follow::Delta;
use quintet_kernel::port::{
    Batch, BoxFuture, Drafts, Error, Journal, Lease, Page, Sessions, StorageError,
};
use quintet_kernel::session_summary::Fork;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Cursor, Record, Seq, SessionId};
use quintet_runtime::{Runtime, RuntimeDeps};
use quintet_stores::memory::MemoryStore;

use crate::gated_store::Gate;
use crate::world::{Client, FOREVER, World, within};

fn unavailable<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Storage(StorageError::Unavailable(_))))
}

#[tokio::test(start_paused = true)]
async fn a_command_that_could_not_be_stored_has_no_effect() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    world.journal.fail_next();
    assert!(unavailable(runtime.label(&session, "a").await));
    assert!(runtime.state(&session).await.labels.is_empty());
    runtime.label(&session, "a").await.unwrap();
    runtime.label(&session, "b").await.unwrap();
    watcher.until("<created><labelled><labelled>").await;
    assert_eq!(world.names_of(&session).await, ["created", "labelled", "labelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_could_not_be_stored_does_not_exist() {
    let world = World::new();
    let runtime = world.start();
    world.journal.fail_next();
    let created = within(quintet_kernel::port::Sessions::create(&runtime, crate::world::origin()));
    assert!(unavailable(created.await));
    tokio::time::sleep(world.timing.hibernate_after).await;
    assert_eq!(runtime.awake(), 0);
    runtime.begin().await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_not_stored_is_not_run() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    world.journal.fail_next();
    assert!(unavailable(runtime.say(&session, "go").await));
    let lost = world.asked().await;
    within(lost.hung_up()).await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert_eq!(watcher.story(), "<created><said><turn><step><answered><done>");
}

#[tokio::test(start_paused = true)]
async fn an_append_with_unknown_result_is_read_back() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    world.journal.set(Gate::Unsure);
    assert!(unavailable(runtime.label(&session, "a").await));
    world.journal.set(Gate::Open);
    // Retrying has no effect.
    assert!(runtime.label(&session, "a").await.unwrap().records.is_empty());
    runtime.label(&session, "b").await.unwrap();
    watcher.until("<created><labelled><labelled>").await;
}

#[tokio::test(start_paused = true)]
async fn text_that_was_shown_survives_a_failed_append() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    asked.say("shown");
    watcher.until("shown").await;
    world.journal.fail_next();
    let second = world.asked().await;
    assert!(asked.dropped());
    second.say("again");
    second.finish();
    watcher.turn_over().await;
    let expected =
        "<created><said><turn><step>shown<interrupted><resumed><step>again<answered><done>";
    assert_eq!(watcher.story(), expected);
    let mut late = runtime.watch(&session, Cursor::START).await;
    late.turn_over().await;
    assert_eq!(late.story(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_tool_is_stopped_before_the_session_is_reloaded() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    world.journal.fail_next();
    assert!(unavailable(runtime.label(&session, "a").await));
    within(job.stopped()).await;
    tokio::time::sleep(world.timing.stop_within / 2).await;
    assert_eq!(world.model.count(), 1);
    assert!(!job.given_up());
    job.finish(Outcome::success("stopped"));
    let asked = world.asked().await;
    assert_eq!(crate::crash::results(&asked).len(), 1);
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!(world.shell.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_permanent_storage_failure_blocks_neither_model_nor_shutdown() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.say("part");
    runtime.watch(&session, Cursor::START).await.until("part").await;
    world.journal.set(Gate::Broken);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(world.model.count() <= 2, "asked {} times", world.model.count());
    within(runtime.close(FOREVER)).await;
}

/// Drafts of which one write fails.
struct Flaky {
    store: MemoryStore,
    left: AtomicUsize,
}

impl Drafts for Flaky {
    fn push(&self, session: &SessionId, piece: &Delta) -> Result<(), StorageError> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            1 => Err(StorageError::Unavailable("the disk is full".into())),
            _ => self.store.push(session, piece),
        }
    }

    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError> {
        self.store.load(session)
    }

    fn clear(&self, session: &SessionId) {
        self.store.clear(session);
    }

    fn release(&self, session: &SessionId) {
        self.store.release(session);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_draft_leaves_no_gap() {
    for failing in 1..4 {
        let mut world = World::new();
        let left = AtomicUsize::new(failing);
        world.drafts = Arc::new(Flaky { store: world.store.clone(), left });
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        let asked = world.asked().await;
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.until("<step>").await;
        for word in ["one ", "two ", "three "] {
            asked.say(word);
            crate::world::settle().await;
            watcher.peek().await;
            assert!("one two three ".starts_with(&watcher.text()), "{}", watcher.text());
        }
        watcher.until("one two three ").await;
        asked.say("four");
        asked.finish();
        watcher.turn_over().await;
        assert_eq!(
            watcher.story(),
            "<created><said><turn><step>one two three four<answered><done>"
        );
    }
}

/// A journal that cannot be read.
struct Damaged(MemoryStore);

impl Journal for Damaged {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.0.append(lease, expected, batch)
    }

    fn read(
        &self,
        _: &SessionId,
        _: Seq,
        _: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        Box::pin(ready(Err(StorageError::Damaged("event 1".into()))))
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        self.0.erase(lease)
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.0.fork(lease, from, batch)
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        self.0.head(session)
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_session_returns_the_error() {
    let world = World::new();
    let session = world.start().begin().await;
    let damaged = Arc::new(Damaged(world.store.clone()));
    let runtime = Runtime::new(RuntimeDeps { journal: damaged, ..world.deps() });
    let says_so = |error: Option<Error>| {
        assert!(matches!(error, Some(Error::Storage(StorageError::Damaged(_)))), "{error:?}");
    };
    says_so(within(runtime.view(&session)).await.err());
    says_so(runtime.label(&session, "a").await.err());
    let mut follow = runtime.follow(&session, Cursor::START).await.unwrap();
    says_so(within(follow.next()).await.err());
    assert_eq!(runtime.awake(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fenced_session_is_dropped() {
    let mut world = World::new();
    let old = world.start();
    let session = old.begin().await;
    world.reopen();
    let fenced = old.label(&session, "a").await.err();
    assert!(matches!(fenced, Some(Error::Storage(StorageError::Fenced))), "{fenced:?}");
    crate::world::settle().await;
    assert_eq!(old.awake(), 0);
    world.start().label(&session, "a").await.unwrap();
    assert_eq!(world.names_of(&session).await, ["created", "labelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_hanging_disk_does_not_fill_memory() {
    let mut world = World::new();
    world.timing.flush_bytes = 1;
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    world.journal.set(Gate::Shut);
    let text = "word ".repeat(1000);
    for word in text.split_inclusive(' ') {
        asked.say(word);
    }
    asked.finish();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(world.journal.appends() < 100, "{} appends", world.journal.appends());
    world.journal.set(Gate::Open);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert_eq!(watcher.text(), text);
}
