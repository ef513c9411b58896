//! Tests of the audit log: what is read of sessions, and that a crash neither loses nor duplicates
//! lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use quintet_kernel::event::{Record, RequestedCall};
use quintet_kernel::port::{BoxFuture, Follower, StorageError};
use quintet_kernel::session_summary::Fork;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, MessageId, SessionSummary, State, TurnId};

use super::*;

/// Sessions whose journals are in memory; counts the events that are read.
#[derive(Default)]
struct Journals {
    events: Mutex<HashMap<SessionId, Vec<Arc<Record>>>>,
    read: Arc<Mutex<usize>>,
    kept: Mutex<BTreeMap<String, Value>>,
    broken: Mutex<bool>,
    /// Changes that wait for a commit, and the number of commits.
    queued: Mutex<usize>,
    commits: Mutex<usize>,
}

struct Reader {
    events: Vec<Arc<Record>>,
    cursor: Cursor,
    read: Arc<Mutex<usize>>,
}

impl Follower for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        let records: Vec<_> =
            self.events.iter().filter(|record| record.seq > self.cursor.seq).cloned().collect();
        *self.read.lock().unwrap() += records.len();
        self.cursor = Cursor::after(self.head());
        let items = records.into_iter().map(Item::Event).collect();
        Box::pin(async { Ok(Some(items)) })
    }

    fn head(&self) -> Seq {
        self.events.len() as Seq
    }

    fn position(&self) -> Cursor {
        self.cursor
    }
}

impl Sessions for Journals {
    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unreachable!("the log reads events alone")
    }

    fn follow(
        &self,
        session: &SessionId,
        cursor: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let events = self.events.lock().unwrap().get(session).cloned();
        let (broken, read) = (*self.broken.lock().unwrap(), Arc::clone(&self.read));
        let missing = Error::NotFound(session.clone());
        Box::pin(async move {
            if broken {
                return Err(StorageError::Unavailable("a test".into()).into());
            }
            let events = events.ok_or(missing)?;
            Ok(Box::new(Reader { events, cursor, read }) as Box<dyn Follower>)
        })
    }

    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        let events = self.events.lock().unwrap().get(session).cloned();
        let missing = Error::NotFound(session.clone());
        let summary = json!({
            "id": session, "created": 0, "updated": 0, "status": "active", "workspace": "/",
            "labels": {}, "last_turn": null, "error": null, "open": false,
        });
        Box::pin(async move {
            let mut summary: SessionSummary = serde_json::from_value(summary).unwrap();
            summary.forked = events.ok_or(missing)?.iter().find_map(|record| match &record.event {
                Event::Forked { parent, at } => Some(Fork { parent: parent.clone(), at: *at }),
                _ => None,
            });
            Ok(summary)
        })
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the log never lists all sessions")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the log never lists all sessions")
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the log never lists all sessions")
    }
}

impl Preferences for Journals {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let kept = self.kept.lock().unwrap().get(&format!("{space} {name}")).cloned();
        Box::pin(async { Ok(kept) })
    }

    fn names(&self, _: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        unreachable!("positions are looked up by name")
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (name, mut kept) = (format!("{space} {name}"), self.kept.lock().unwrap());
        match value {
            Value::Null => kept.remove(&name),
            value => kept.insert(name, value),
        };
        *self.queued.lock().unwrap() += 1;
        Box::pin(async {
            // A commit takes a while; changes that are queued meanwhile share the next one.
            tokio::task::yield_now().await;
            if std::mem::take(&mut *self.queued.lock().unwrap()) > 0 {
                *self.commits.lock().unwrap() += 1;
            }
            Ok(())
        })
    }

    fn replace(
        &self,
        _: &str,
        _: &str,
        _: Option<Value>,
        _: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        unreachable!("positions are kept whatever was there")
    }
}

struct World {
    dir: tempfile::TempDir,
    journals: Arc<Journals>,
    audit: Audit,
}

impl World {
    async fn new() -> Self {
        let (dir, journals) = (tempfile::tempdir().unwrap(), Arc::<Journals>::default());
        let audit = open(dir.path(), &journals).await;
        Self { dir, journals, audit }
    }

    /// As after `kill -9`.
    async fn restart(&mut self) {
        self.audit = open(self.dir.path(), &self.journals).await;
        *self.journals.read.lock().unwrap() = 0;
    }

    fn add(&self, name: &str, event: Event) {
        let mut events = self.journals.events.lock().unwrap();
        let events = events.entry(session(name)).or_default();
        let (seq, at) = (events.len() as Seq + 1, Time::default());
        events.push(Arc::new(Record { seq, at, event }));
    }

    /// Adds a requested call.
    fn request(&self, name: &str, id: &str) {
        let id = CallId::parse(id).unwrap();
        let call = RequestedCall { id, tool: "shell".into(), input: json!({}), malformed: None };
        self.add(name, Event::VerificationRequested { turn: turn(), call });
    }

    /// Adds the end of a call.
    fn complete(&self, name: &str, id: &str) {
        let (call, message) = (CallId::parse(id).unwrap(), MessageId::parse("msg_1").unwrap());
        let (tool, outcome) = ("shell".into(), Outcome::success("done"));
        self.add(name, Event::CallCompleted { turn: turn(), call, tool, message, outcome });
    }

    /// Adds an event that has no line.
    fn add_other_event(&self, name: &str) {
        self.add(name, Event::TurnReleased { turn: turn() });
    }

    async fn update(&mut self, name: &str) -> Result<(), ProjectionError> {
        self.audit.update(&session(name), Change::Head(0)).await
    }

    async fn checkpoint(&mut self) {
        self.audit.checkpoint(Time::from_micros(1)).await.unwrap();
    }

    /// The calls with a line.
    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("audit.jsonl")).unwrap();
        let line = |line| serde_json::from_str::<Value>(line).unwrap();
        text.lines().map(line).map(|line| line["call_id"].as_str().unwrap().into()).collect()
    }

    fn read(&self) -> usize {
        *self.journals.read.lock().unwrap()
    }
}

async fn open(folder: &Path, journals: &Arc<Journals>) -> Audit {
    Audit::open(folder, Vec::new(), journals.clone(), journals.clone()).await.unwrap()
}

fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn turn() -> TurnId {
    TurnId::parse("turn_1").unwrap()
}

#[tokio::test]
async fn events_are_read_once() {
    let mut world = World::new().await;
    for _ in 0..100 {
        world.add_other_event("s1");
    }
    world.update("s1").await.unwrap();
    assert_eq!(world.read(), 100);
    world.add_other_event("s1");
    world.update("s1").await.unwrap();
    assert_eq!(world.read(), 101);
    world.checkpoint().await;
    assert!(world.audit.active.is_empty());
    world.restart().await;
    assert_eq!(world.audit.since(), Time::from_micros(1));
    assert!(world.audit.has(&session("s1"), 101).await);
    assert_eq!(world.read(), 0);
    world.add_other_event("s1");
    assert!(!world.audit.has(&session("s1"), 102).await);
    world.update("s1").await.unwrap();
    assert_eq!(world.read(), 1);
}

#[tokio::test]
async fn a_crash_neither_loses_nor_duplicates_a_line() {
    let mut world = World::new().await;
    world.request("s1", "c1");
    world.complete("s1", "c1");
    world.request("s1", "c2");
    world.update("s1").await.unwrap();
    world.checkpoint().await;
    world.complete("s1", "c2");
    world.request("s1", "c3");
    world.update("s1").await.unwrap();
    assert_eq!(world.lines(), ["c1", "c2"]);
    // Positions are older than the lines.
    world.restart().await;
    world.complete("s1", "c3");
    world.update("s1").await.unwrap();
    assert_eq!(world.lines(), ["c1", "c2", "c3"]);
    // Only the unfinished call and the events after it were read again.
    assert_eq!(world.read(), 4);
}

#[tokio::test]
async fn a_failure_duplicates_nothing() {
    let mut world = World::new().await;
    world.request("s1", "c1");
    world.complete("s1", "c1");
    world.update("s1").await.unwrap();
    *world.journals.broken.lock().unwrap() = true;
    world.request("s1", "c2");
    world.complete("s1", "c2");
    assert!(world.update("s1").await.is_err());
    *world.journals.broken.lock().unwrap() = false;
    world.update("s1").await.unwrap();
    assert_eq!(world.lines(), ["c1", "c2"]);
}

#[tokio::test]
async fn a_deleted_session_is_ignored() {
    let mut world = World::new().await;
    world.update("s1").await.unwrap();
    world.request("s1", "c1");
    world.update("s1").await.unwrap();
    world.audit.update(&session("s1"), Change::Erased).await.unwrap();
    assert!(world.audit.active.is_empty());
}

#[tokio::test]
async fn a_checkpoint_while_catching_up_duplicates_nothing() {
    let mut world = World::new().await;
    for name in ["s1", "s2"] {
        world.request(name, name);
        world.complete(name, name);
        world.update(name).await.unwrap();
    }
    // No position was ever stored, as after an upgrade or a crash.
    world.restart().await;
    world.update("s1").await.unwrap();
    world.checkpoint().await;
    world.update("s2").await.unwrap();
    assert_eq!(world.lines(), ["s1", "s2"]);
    // The same if the daemon dies in between.
    world.restart().await;
    world.update("s2").await.unwrap();
    assert_eq!(world.lines(), ["s1", "s2"]);
}

#[tokio::test]
async fn shared_events_of_a_fork_are_not_read() {
    let mut world = World::new().await;
    for n in 0..50 {
        let call = format!("c{n}");
        world.request("s1", &call);
        world.complete("s1", &call);
    }
    world.add("s1", Event::Forked { parent: session("s0"), at: 100 });
    world.request("s1", "own");
    world.complete("s1", "own");
    world.update("s1").await.unwrap();
    assert_eq!((world.lines(), world.read()), (vec!["own".to_owned()], 3));
}

#[tokio::test]
async fn positions_share_commits() {
    let mut world = World::new().await;
    for n in 0..300 {
        let name = format!("s{n}");
        world.add_other_event(&name);
        world.update(&name).await.unwrap();
    }
    world.checkpoint().await;
    // One for the sessions and one for the whole log.
    assert_eq!(*world.journals.commits.lock().unwrap(), 2);
}

#[tokio::test]
async fn the_position_of_an_erased_session_is_deleted() {
    let mut world = World::new().await;
    world.add_other_event("s1");
    world.update("s1").await.unwrap();
    world.checkpoint().await;
    let kept = |world: &World| world.journals.kept.lock().unwrap().contains_key("audit s1");
    assert!(kept(&world));
    world.audit.update(&session("s1"), Change::Erased).await.unwrap();
    assert!(!kept(&world));
}
