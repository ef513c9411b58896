//! The session tree: failures, missing files and erased sessions.

use quintet_kernel::event::Record;
use quintet_kernel::message::Attachment;
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::port::{BoxFuture, Clock, Follower};
use quintet_kernel::stamp::Stamp;
use quintet_kernel::{SessionSummary, State};
use quintet_stores::memory;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::change_feed::ChangeFeed;
use crate::projection::{self, Sources};

/// Sessions that all have the same events, or do not exist if `gone` is set.
#[derive(Default)]
struct SameSessions {
    events: Vec<Event>,
    gone: AtomicBool,
}

struct Reader(Vec<Arc<Record>>, Cursor);

impl Follower for Reader {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        self.1 = Cursor::after(self.head());
        let items = self.0.iter().cloned().map(Item::Event).collect();
        Box::pin(async { Ok(Some(items)) })
    }

    fn head(&self) -> Seq {
        self.0.len() as Seq
    }

    fn position(&self) -> Cursor {
        self.1
    }
}

impl Sessions for SameSessions {
    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        let state = State::new(session.clone(), Arc::new(rules()));
        Box::pin(async { Ok(Arc::new(state)) })
    }

    fn follow(
        &self,
        session: &SessionId,
        cursor: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let session = session.clone();
        let record = |(n, event): (usize, &Event)| {
            Arc::new(Record { seq: n as Seq + 1, at: Time::default(), event: event.clone() })
        };
        let records = self.events.iter().enumerate().map(record).collect();
        Box::pin(async move {
            if self.gone.load(Ordering::Relaxed) {
                Err(Error::NotFound(session))
            } else {
                Ok(Box::new(Reader(records, cursor)) as Box<dyn Follower>)
            }
        })
    }

    fn summary(&self, _: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        unreachable!("the tree reads events and states")
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the tree never lists all sessions here")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the tree never lists all sessions here")
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("the tree never lists all sessions here")
    }
}

fn rules() -> Rules {
    let (rules, kinds, tools) = (Vec::new(), Vec::new(), Vec::new());
    let limits = Limits {
        steps: 1,
        tokens: 1,
        time: Duration::from_secs(1),
        repeats: 1,
        compact_at_percent: 80,
        assumed_window: 128_000,
    };
    Rules {
        approval: ApprovalPolicy { rules, kinds, tools, on_deny: OnDeny::Continue, expires: None },
        review: ReviewMode::Off,
        context_tokens: 0,
        save_memory: false,
        verify: VerifyPolicy { auto: false, tool: "verify".into(), attempts: 1 },
        limits,
        recovery: Recovery::Continue,
        client_grace: Duration::from_secs(30),
        subagents: SubagentLimits::default(),
        tools: Vec::new(),
        default_model: ModelRef { provider: "fake".into(), model: "fake".into() },
    }
}

struct Fixture {
    home: tempfile::TempDir,
    sessions: Arc<SameSessions>,
    store: Arc<memory::MemoryStore>,
}

impl Fixture {
    fn new(events: Vec<Event>) -> Self {
        let sessions = Arc::new(SameSessions { events, ..SameSessions::default() });
        Self { home: tempfile::tempdir().unwrap(), sessions, store: Arc::default() }
    }

    async fn start(&self) -> TreeProjection {
        let root = self.home.path().to_owned();
        let sessions = (self.sessions.clone(), self.sessions.clone());
        let tree = Tree::new(root, self.store.clone(), sessions.0, sessions.1);
        TreeProjection::new(tree, self.store.clone()).await
    }

    fn has(&self, path: &str) -> bool {
        self.home.path().join(path).exists()
    }
}

fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

fn attachment(name: &str) -> Event {
    let blob = BlobId::parse(&"ab".repeat(32)).unwrap();
    Event::AttachmentAdded(Attachment {
        name: name.into(),
        mime: "text/plain".into(),
        blob,
        size: 1,
    })
}

#[tokio::test]
async fn a_folder_that_fails_is_retried_and_delays_no_other() {
    let fixture = Fixture::new(Vec::new());
    let mut projection = fixture.start().await;
    // A file has the name of its folder.
    std::fs::write(fixture.home.path().join("bad"), "").unwrap();
    let good: Vec<String> = (0..8).map(|n| format!("s{n}")).collect();
    for name in good.iter().map(String::as_str).chain(["bad"]) {
        projection.tree.note_stale(&session(name), Some(Stale::default()));
    }
    assert!(projection.write_deferred(Deferred::All).await.is_err());
    assert!(good.iter().all(|name| fixture.has(&format!("{name}/{POSITION_FILE}"))));
    assert!(projection.has_deferred());
    std::fs::remove_file(fixture.home.path().join("bad")).unwrap();
    projection.write_deferred(Deferred::All).await.unwrap();
    assert!(fixture.has("bad/position.json") && !projection.has_deferred());
}

#[tokio::test]
async fn a_file_that_cannot_be_copied_is_skipped() {
    let long = "x".repeat(255);
    for (name, content) in [("a.txt", None), (long.as_str(), Some("ab")), ("y/../..", Some("ab"))] {
        let mut event = attachment(name);
        let fixture = Fixture::new(Vec::new());
        if let (Some(content), Event::AttachmentAdded(file)) = (content, &mut event) {
            file.blob = fixture.store.put(content.into()).await.unwrap();
        }
        let sessions = Arc::new(SameSessions { events: vec![event], ..SameSessions::default() });
        let fixture = Fixture { sessions, ..fixture };
        let mut projection = fixture.start().await;
        projection.update(&session("s"), Change::Head(1)).await.unwrap();
        assert!(projection.has(&session("s"), 1).await);
        // The longest valid file name.
        assert_eq!(fixture.has(&format!("s/attachments/{long}")), name == long);
    }
    let too_long = ProjectionError::File(io::ErrorKind::InvalidFilename.into());
    assert!(!is_transient(&too_long));
}

#[tokio::test]
async fn sessions_erased_while_the_tree_was_off_are_removed_at_the_next_start() {
    let fixture = Fixture::new(vec![attachment("a.txt")]);
    let mut projection = fixture.start().await;
    projection.update(&session("s"), Change::Head(1)).await.unwrap();
    projection.update(&session("t"), Change::Head(1)).await.unwrap();
    projection.checkpoint(Time::default()).await.unwrap();
    fixture.store.set_preference(ERASED_SPACE, "s", true.into()).await.unwrap();
    fixture.sessions.gone.store(true, Ordering::Relaxed);
    let mut projection = fixture.start().await;
    assert_eq!(projection.erased().await.unwrap(), [session("s")]);
    projection.update(&session("s"), Change::Head(0)).await.unwrap();
    assert!(!fixture.has("s") && fixture.has("t"));
    // The session stays on the list until the checkpoint.
    assert_eq!(fixture.store.names(ERASED_SPACE).await.unwrap(), ["s"]);
    projection.checkpoint(Time::default()).await.unwrap();
    assert_eq!(fixture.store.names(ERASED_SPACE).await.unwrap(), [] as [&str; 0]);
    // The same holds for a session that is erased while the projection runs.
    fixture.store.set_preference(ERASED_SPACE, "t", true.into()).await.unwrap();
    projection.update(&session("t"), Change::Erased).await.unwrap();
    projection.checkpoint(Time::default()).await.unwrap();
    assert!(!fixture.has("t") && fixture.store.names(ERASED_SPACE).await.unwrap().is_empty());
}

/// One session, and a clock that does not move.
struct OneSession(SessionSummary);

impl Sessions for OneSession {
    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unreachable!("the session is only listed here")
    }

    fn follow(&self, _: &SessionId, _: Cursor) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        unreachable!("the session is only listed here")
    }

    fn summary(&self, _: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        unreachable!("the session is only listed here")
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("sessions are listed by their last use")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let summaries = vec![self.0.clone()];
        Box::pin(async { Ok(summaries) })
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("nothing is forked here")
    }
}

impl Clock for OneSession {
    fn stamp(&self) -> Stamp {
        unreachable!("nothing is decided here")
    }

    fn now(&self) -> Time {
        Time::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_the_position_is_written_leaves_no_outdated_session_json() {
    let fixture = Fixture::new(vec![attachment("a.txt"), attachment("b.txt")]);
    let folder = fixture.home.path().join("s");
    std::fs::create_dir(&folder).unwrap();
    // The log has both events; the position and a large `session.json` have only the first.
    let position =
        FolderState { seq: 1, session_bytes: LARGE_SESSION_LIMIT, ..FolderState::default() };
    std::fs::write(folder.join(EVENTS_FILE), "both\n").unwrap();
    std::fs::write(folder.join(POSITION_FILE), json(&position)).unwrap();
    std::fs::write(folder.join(SESSION_FILE), "old").unwrap();
    let summary = serde_json::json!({
        "id": "s", "created": 0, "updated": 0, "head": 2, "status": "active", "workspace": "/",
        "system_prompt": null, "labels": {}, "last_turn": null, "error": null, "open": false,
    });
    let index = Arc::new(OneSession(serde_json::from_value(summary).unwrap()));
    let sources = Sources {
        changes: ChangeFeed::default().subscribe(),
        sessions: index.clone(),
        clock: index,
        stop: CancellationToken::new(),
    };
    let running = projection::run(fixture.start().await, sources);
    // The next checkpoint is a minute away.
    let stopped = tokio::time::timeout(Duration::from_secs(1), running).await;
    assert!(stopped.is_err());
    let written = std::fs::read_to_string(folder.join(SESSION_FILE)).unwrap();
    assert_ne!(written, "old");
    let position: FolderState = load(&folder.join(POSITION_FILE)).await.unwrap();
    assert_eq!((position.seq, position.unwritten), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn deferred_writes_are_done_when_a_session_is_quiet() {
    let fixture = Fixture::new(vec![attachment("a.txt"), attachment("b.txt")]);
    let folder = fixture.home.path().join("s");
    let projection = fixture.start().await;
    for (session_bytes, running, intervals) in [
        (SMALL_SESSION_LIMIT, false, Some(2)),
        (LARGE_SESSION_LIMIT, false, Some(QUIET_INTERVALS)),
        (SMALL_SESSION_LIMIT, true, None),
    ] {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let position = FolderState { seq: 1, session_bytes, running, ..FolderState::default() };
        std::fs::write(folder.join(POSITION_FILE), json(&position)).unwrap();
        projection.tree.update(&session("s")).await.unwrap();
        assert!(projection.has_deferred() && !fixture.has("s/session.json"));
        for n in 1..=2 * QUIET_INTERVALS {
            projection.write_stale(Deferred::Quiet).await.unwrap();
            let written = intervals.is_some_and(|intervals| n >= intervals);
            assert_eq!(fixture.has("s/session.json"), written, "after {n} intervals");
            assert_eq!(projection.has_deferred(), !written);
        }
    }
}
