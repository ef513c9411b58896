//! Tests of storage that fails or hangs: no client hangs, and no open turn is lost.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quintet_kernel::command::{Command, NewAttachment};
use quintet_kernel::message::MediaKind;
use quintet_kernel::port::{BlobBody, Blobs, BoxFuture, Error, Sessions, StorageError};
use quintet_kernel::{BlobId, Cursor, SessionId, Status};
use quintet_runtime::{Runtime, RuntimeDeps};
use quintet_stores::memory::MemoryStore;

use crate::crash::until_crash;
use crate::gated_store::Gate;
use crate::world::{Client, FOREVER, World, label, say, settle, waits, within};

/// A session with an open turn, after a crash of the daemon.
fn crashed_session(world: &mut World) -> SessionId {
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await;
        session
    });
    world.reopen();
    session
}

fn unavailable<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Storage(StorageError::Unavailable(_))))
}

#[test]
fn an_open_turn_continues_once_its_session_can_be_read() {
    let mut world = World::new();
    let session = crashed_session(&mut world);
    world.journal.fail_reads(20);
    until_crash(async {
        let runtime = world.start();
        runtime.recover().await.unwrap();
        while world.journal.read_failures() > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(runtime.awake(), 1);
        }
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        world.asked().await.finish();
        watcher.turn_over().await;
    });
}

#[test]
fn clients_of_an_unreadable_session_get_the_error_at_once() {
    let mut world = World::new();
    let session = crashed_session(&mut world);
    world.journal.fail_reads(usize::MAX);
    until_crash(async {
        let runtime = world.start();
        runtime.recover().await.unwrap();
        settle().await;
        let begun = tokio::time::Instant::now();
        for _ in 0..10 {
            assert!(unavailable(runtime.label(&session, "a").await));
            assert!(unavailable(within(runtime.view(&session)).await));
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(runtime.awake(), 1);
        // Clients that use the session once it can be read again do not wait either.
        tokio::time::sleep(Duration::from_secs(300)).await;
        world.journal.fail_reads(0);
        let healed = tokio::time::Instant::now();
        runtime.label(&session, "b").await.unwrap();
        assert_eq!(healed.elapsed(), Duration::ZERO);
        world.asked().await.finish();
    });
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_idle_session_is_dropped() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    world.journal.fail_reads(1);
    assert!(unavailable(runtime.label(&session, "a").await));
    settle().await;
    assert_eq!(runtime.awake(), 0);
    runtime.label(&session, "a").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_storage_that_does_not_answer() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    world.journal.fail_reads(5);
    watcher.until("<created>").await;
    assert_eq!(world.journal.read_failures(), 0);
    let mut hanging = runtime.follow(&session, Cursor::START).await.unwrap();
    world.journal.fail_reads(usize::MAX);
    let mut next = hanging.next();
    assert!(waits(&mut next).await);
    within(runtime.close(FOREVER)).await;
    assert!(unavailable(within(next).await));
}

#[test]
fn an_unreadable_session_is_listed_as_failed() {
    let mut world = World::new();
    let session = crashed_session(&mut world);
    world.journal.damage(&session);
    until_crash(async {
        let runtime = world.start();
        assert!(within(runtime.summary(&session)).await.unwrap().open);
        runtime.recover().await.unwrap();
        settle().await;
        let summary = within(runtime.summary(&session)).await.unwrap();
        assert_eq!((summary.status, summary.open), (Status::Failed, false));
        assert_eq!(summary.error.as_deref(), Some("damaged: event 1"));
        assert_eq!(runtime.recover().await.unwrap(), 0);
    });
}

/// Blobs of which some reads fail.
struct FlakyBlobs {
    store: MemoryStore,
    failures: AtomicUsize,
}

impl Blobs for FlakyBlobs {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        self.store.put(content)
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        self.store.put_all(contents)
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let one_less = |left: usize| left.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) {
            Ok(_) => Box::pin(ready(Err(StorageError::Unavailable("no answer".into())))),
            Err(_) => self.store.get(blob),
        }
    }

    fn body(&self, blob: &BlobId, most: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        self.store.body(blob, most)
    }
}

#[tokio::test(start_paused = true)]
async fn reading_an_attachment_is_retried() {
    let world = World::new();
    let (store, failures) = (world.store.clone(), AtomicUsize::new(3));
    let blob = store.put(b"read me".to_vec()).await.unwrap();
    let blobs = Arc::new(FlakyBlobs { store, failures });
    let runtime = Runtime::new(RuntimeDeps { blobs, ..world.deps() });
    let session = runtime.begin().await;
    let upload = NewAttachment { name: "a.txt".into(), mime: "text/plain".into(), blob, size: 7 };
    let Command::AddMessage(mut say) = say("look at this") else { unreachable!() };
    say.files = vec![(MediaKind::File, upload)];
    within(runtime.submit(&session, Command::AddMessage(say))).await.unwrap();
    world.asked().await.finish();
    runtime.watch(&session, Cursor::START).await.until("<step><answered><done>").await;
}

/// Many sessions with an open turn, after a crash of the daemon.
fn crashed_sessions(world: &mut World) -> Vec<SessionId> {
    let sessions = until_crash(async {
        let runtime = world.start();
        let mut sessions = Vec::new();
        for _ in 0..100 {
            let session = runtime.begin().await;
            runtime.say(&session, "go").await.unwrap();
            sessions.push(session);
            world.asked().await;
        }
        sessions
    });
    world.reopen();
    sessions
}

#[test]
fn sessions_are_recovered_some_at_a_time() {
    let mut world = World::new();
    let sessions = crashed_sessions(&mut world);
    until_crash(async {
        let runtime = world.start();
        world.journal.hold_reads(true);
        assert_eq!(within(runtime.recover()).await.unwrap(), 100);
        settle().await;
        assert_eq!(world.journal.reading(), 16);
        // The daemon is ready meanwhile, and a client that uses one of the sessions does not wait.
        runtime.begin().await;
        let mut labelled = runtime.submit(&sessions[99], label("a"));
        assert!(waits(&mut labelled).await);
        settle().await;
        assert_eq!(world.journal.reading(), 17);
        world.journal.hold_reads(false);
        within(labelled).await.unwrap();
        for _ in 0..100 {
            world.asked().await.finish();
        }
        for session in &sessions {
            runtime.watch(session, Cursor::START).await.turn_over().await;
        }
    });
}

#[test]
fn models_of_recovered_sessions_are_called_some_at_a_time() {
    let mut world = World::new();
    crashed_sessions(&mut world);
    let asked_before = world.model.count();
    until_crash(async {
        let runtime = world.start();
        within(runtime.recover()).await.unwrap();
        settle().await;
        assert_eq!(world.model.count() - asked_before, 16);
        let mut answering = Vec::new();
        for _ in 0..100 {
            let asked = world.asked().await;
            asked.say("here");
            answering.push(asked);
        }
    });
}

#[test]
fn silent_models_do_not_delay_other_sessions() {
    let mut world = World::new();
    crashed_sessions(&mut world);
    let asked_before = world.model.count();
    until_crash(async {
        let runtime = world.start();
        within(runtime.recover()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(world.model.count() - asked_before, 100);
    });
}

#[tokio::test(start_paused = true)]
async fn a_hanging_disk_does_not_hang_the_shutdown() {
    let world = World::new();
    let runtime = world.start();
    let (session, other) = (runtime.begin().await, runtime.begin().await);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    world.journal.set(Gate::Shut);
    let mut labelled = runtime.submit(&session, label("a"));
    assert!(waits(&mut labelled).await);
    settle().await;
    let begun = tokio::time::Instant::now();
    let unfinished = within(runtime.close(Duration::from_secs(5))).await;
    assert_eq!(unfinished, [session]);
    assert!(begun.elapsed() < Duration::from_secs(6));
    // No client gets an acknowledgement.
    assert!(unavailable(within(labelled).await));
    watcher.end().await;
    assert_eq!(watcher.story(), "<created>");
    assert_eq!(runtime.awake(), 0);
    assert_eq!(world.names_of(&other).await, ["created"]);
}

#[test]
fn closing_does_not_load_sessions_that_wait_for_recovery() {
    let mut world = World::new();
    let sessions = crashed_sessions(&mut world);
    until_crash(async {
        let runtime = world.start();
        world.journal.hold_reads(true);
        runtime.recover().await.unwrap();
        settle().await;
        let mut closed = Box::pin(runtime.close(FOREVER));
        assert!(waits(&mut closed).await);
        settle().await;
        world.journal.hold_reads(false);
        assert_eq!(within(closed).await, []);
        let mut resumed = 0;
        for session in &sessions {
            resumed += usize::from(world.names_of(session).await.contains(&"resumed"));
        }
        assert_eq!(resumed, 16);
    });
}
