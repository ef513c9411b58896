//! Tests that loading a session costs as much as is new in it, not its whole length.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quintet_kernel::event::TurnOptions;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::{Channel, FinishReason, ModelRef, Usage};
use quintet_kernel::port::{
    Batch, BoxFuture, Journal, Lease, Leases as _, Page, Sessions as _, Snapshot, StorageError,
};
use quintet_kernel::session_summary::Fork;
use quintet_kernel::{Event, Record, Seq, SessionId, State, Time, snapshot};
use quintet_runtime::{Runtime, RuntimeDeps};
use quintet_stores::DataDir;
use quintet_stores::memory::MemoryStore;
use tokio::time::Instant;

use crate::world::{Client, FOREVER, World, origin, within};

/// A journal that counts the events that are read.
struct Counting {
    store: MemoryStore,
    read: AtomicUsize,
}

impl Counting {
    fn new(world: &World) -> Arc<Self> {
        Arc::new(Self { store: world.store.clone(), read: AtomicUsize::new(0) })
    }

    /// Number of events read since the last call.
    fn events(&self) -> usize {
        self.read.swap(0, Ordering::SeqCst)
    }
}

impl Journal for Counting {
    fn append(
        &self,
        lease: &Lease,
        expected: Seq,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.store.append(lease, expected, batch)
    }

    fn read(
        &self,
        session: &SessionId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<Record>, StorageError>> {
        let session = session.clone();
        Box::pin(async move {
            let records = self.store.read(&session, after, page).await?;
            self.read.fetch_add(records.len(), Ordering::SeqCst);
            Ok(records)
        })
    }

    fn head(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Seq>, StorageError>> {
        self.store.head(session)
    }

    fn erase(&self, lease: &Lease) -> BoxFuture<'static, Result<(), StorageError>> {
        self.store.erase(lease)
    }

    fn fork(
        &self,
        lease: &Lease,
        from: &Fork,
        batch: Batch,
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        self.store.fork(lease, from, batch)
    }

    fn snapshot(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Option<Snapshot>, StorageError>> {
        self.store.snapshot(session)
    }

    fn keep_snapshot(
        &self,
        lease: &Lease,
        snapshot: Snapshot,
    ) -> BoxFuture<'static, Result<(), StorageError>> {
        self.store.keep_snapshot(lease, snapshot)
    }
}

/// Labels a session often enough for a snapshot.
async fn grow(runtime: &Runtime, session: &SessionId) {
    for n in 0..1000 {
        runtime.label(session, &format!("{}", n % 10)).await.unwrap();
        runtime.submit(session, crate::world::say("note")).await.unwrap();
        runtime.cancel(session).await.unwrap();
    }
}

async fn sleep(world: &World, runtime: &Runtime) {
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    // A snapshot is stored on another thread, for which the paused clock does not wait.
    while runtime.awake() > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_session_is_loaded_from_its_snapshot() {
    let world = World::new();
    let journal = Counting::new(&world);
    let runtime = Runtime::new(RuntimeDeps { journal: journal.clone(), ..world.deps() });
    let session = runtime.begin().await;
    grow(&runtime, &session).await;
    let before = runtime.state(&session).await;
    sleep(&world, &runtime).await;
    let kept = world.store.snapshot(&session).await.unwrap().expect("a snapshot");
    assert_eq!(kept.seq, before.head);
    journal.events();
    assert_eq!(*runtime.state(&session).await, *before);
    assert_eq!(journal.events(), 0, "the snapshot has all events");
    runtime.label(&session, "new").await.unwrap();
    sleep(&world, &runtime).await;
    assert_eq!(world.store.snapshot(&session).await.unwrap(), Some(kept.clone()), "little is new");
    let after = runtime.state(&session).await;
    assert_eq!(journal.events(), 1);
    assert_eq!((after.head, after.labels.len()), (before.head + 1, 11));
    // An unreadable snapshot is ignored.
    sleep(&world, &runtime).await;
    let lease = world.store.acquire(&session).await.unwrap();
    let broken = Snapshot { body: b"{".to_vec(), ..kept };
    world.store.keep_snapshot(&lease, broken).await.unwrap();
    assert_eq!(*runtime.state(&session).await, *after);
    assert_eq!(journal.events() as Seq, after.head);
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_loaded_from_its_parents_snapshot() {
    let world = World::new();
    let journal = Counting::new(&world);
    let runtime = Runtime::new(RuntimeDeps { journal: journal.clone(), ..world.deps() });
    let session = runtime.begin().await;
    grow(&runtime, &session).await;
    sleep(&world, &runtime).await;
    journal.events();
    let fork = within(quintet_kernel::port::Sessions::fork(&runtime, &session, None)).await;
    let fork = fork.unwrap().session;
    let state = runtime.state(&fork).await;
    assert!(journal.events() < 10);
    let mut whole = State::new(fork.clone(), world.deps().rules);
    whole.replay(&world.journal_of(&fork).await);
    assert_eq!(*state, whole);
}

#[tokio::test(start_paused = true)]
async fn shutdown_stores_snapshots() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    grow(&runtime, &session).await;
    let head = runtime.state(&session).await.head;
    let runtime = Runtime::new(RuntimeDeps { journal: Counting::new(&world), ..world.deps() });
    runtime.state(&session).await;
    within(runtime.close(FOREVER)).await;
    let kept = world.store.snapshot(&session).await.unwrap();
    assert_eq!(kept.map(|kept| kept.seq), Some(head));
}

/// Turns of ten events each, of which six are text, as in a usual conversation.
fn turns(count: u64) -> Vec<Event> {
    let mut events = vec![Event::SessionCreated(origin())];
    let model = ModelRef::parse("fake/fake").unwrap();
    for n in 0..count {
        let turn: quintet_kernel::TurnId =
            quintet_kernel::TurnId::parse(&format!("turn_20260101t000000z_{n:08}")).unwrap();
        let step = quintet_kernel::StepId::parse(&format!("step_20260101t000000z_{n:08}")).unwrap();
        let message = |who: &str| {
            quintet_kernel::MessageId::parse(&format!("msg_20260101t000000z_{who}{n:07}")).unwrap()
        };
        let options = TurnOptions::default();
        let parts = vec![Part::Text("and what comes after that?".into())];
        events.push(Event::MessageAdded {
            message: message("u"),
            turn: turn.clone(),
            role: Role::User,
            parts,
            options: options.clone(),
            nth: n,
        });
        events.push(Event::TurnStarted { turn: turn.clone(), attempt: 1, options });
        events.push(Event::StepStarted {
            turn: turn.clone(),
            step: step.clone(),
            model: model.clone(),
            context_window: None,
            shortened: None,
        });
        for part in 0..5_u64 {
            let text = "some words of an answer, ".repeat(4);
            events.push(Event::TextAppended {
                turn: turn.clone(),
                step: step.clone(),
                offset: part * 100,
                channel: Channel::Text,
                text,
                pieces: Vec::new(),
            });
        }
        let (finish, usage) =
            (FinishReason::Stop, Usage { input: 100, output: 100, ..Usage::default() });
        events.push(Event::ModelCompleted {
            turn: turn.clone(),
            step,
            message: Some(message("a")),
            finish,
            calls: vec![],
            usage,
            sealed: vec![],
            by: None,
        });
        events.push(Event::TurnCompleted { turn, usage, verified: None });
    }
    events
}

/// `cargo test -p quintet-runtime --test it wake::measured -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn measured() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let store = Arc::new(data.sqlite().unwrap());
    let session = SessionId::parse("s").unwrap();
    let lease = store.acquire(&session).await.unwrap();
    let world = World::new();
    let mut state = State::new(session.clone(), world.deps().rules);
    let records = turns(10_000).into_iter().zip(1..);
    let records: Vec<_> = records
        .map(|(event, seq)| Arc::new(Record { seq, at: Time::from_micros(seq as i64), event }))
        .collect();
    for batch in records.chunks(1000) {
        let expected = state.head;
        state.replay(batch.iter().map(|record| &**record));
        let batch = Batch { records: batch.to_vec(), summary: state.summary() };
        store.append(&lease, expected, batch).await.unwrap();
    }
    let deps = || RuntimeDeps {
        journal: store.clone(),
        leases: store.clone(),
        session_index: store.clone(),
        ..world.deps()
    };
    for what in ["whole journal", "snapshot", "snapshot"] {
        let runtime = Runtime::new(deps());
        let begun = Instant::now();
        let seen = runtime.state(&session).await;
        println!(
            "{what}: woken in {:?}, {} events, {} turns",
            begun.elapsed(),
            seen.head,
            seen.turns.len()
        );
        drop(seen);
        let begun = Instant::now();
        runtime.close(FOREVER).await;
        println!("let go in {:?}", begun.elapsed());
    }
    let kept = store.snapshot(&session).await.unwrap().unwrap();
    println!("the snapshot has {} KB", kept.body.len() / 1024);
    let rules = world.deps().rules;
    let least = |what: &str, mut work: Box<dyn FnMut() + '_>| {
        let times = (0..10).map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed()
        });
        println!("{what}: at least {:?}", times.min().unwrap());
    };
    least("take", Box::new(|| drop(snapshot::take(&state))));
    least("restore", Box::new(|| drop(snapshot::restore(&kept, &session, &rules))));
    let bodies: Vec<_> =
        records.iter().map(|record| quintet_kernel::codec::encode(&record.event)).collect();
    least(
        "decode all events",
        Box::new(|| {
            for body in &bodies {
                quintet_kernel::codec::decode(1, body).unwrap();
            }
        }),
    );
    least(
        "replay all events",
        Box::new(|| {
            let mut state = State::new(session.clone(), rules.clone());
            state.replay(records.iter().map(|record| &**record));
        }),
    );
}
