//! Projections: what is read at the start, stored positions, and stopping.

use std::path::Path;
use std::sync::Mutex;

use quintet_kernel::port::{BoxFuture, Follower, SessionObserver as _};
use quintet_kernel::stamp::Stamp;
use quintet_kernel::{Cursor, State};

use super::*;
use crate::change_feed::ChangeFeed;

/// Sessions, the n-th of which changed at second n.
struct Index {
    summaries: Vec<SessionSummary>,
    listed: Mutex<Vec<usize>>,
}

impl Index {
    fn new(sessions: i64) -> Arc<Self> {
        let summaries = (1..=sessions).rev().map(summary).collect();
        Arc::new(Self { summaries, listed: Mutex::default() })
    }
}

impl Sessions for Index {
    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unreachable!("sessions are only listed here")
    }

    fn follow(&self, _: &SessionId, _: Cursor) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        unreachable!("sessions are only listed here")
    }

    fn summary(&self, _: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        unreachable!("sessions are only listed here")
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("sessions are listed by their last use")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        self.listed.lock().unwrap().push(limit);
        let summaries = self.summaries.iter().take(limit).cloned().collect();
        Box::pin(async { Ok(summaries) })
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unreachable!("nothing is forked here")
    }
}

/// A clock that always returns the thousandth minute.
struct FixedClock;

fn now() -> Time {
    Time::from_micros(1000 * 60 * 1_000_000)
}

impl Clock for FixedClock {
    fn stamp(&self) -> Stamp {
        unreachable!("nothing is decided here")
    }

    fn now(&self) -> Time {
        now()
    }
}

/// A projection that records its calls.
#[derive(Clone, Debug, Default)]
struct RecordingProjection {
    since: Time,
    /// The event up to which it has all sessions.
    has: Seq,
    log: Arc<Mutex<Vec<String>>>,
    /// The number of updates that fail.
    failures: usize,
    stop: CancellationToken,
    stop_after: usize,
}

impl RecordingProjection {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Projection for RecordingProjection {
    const NAME: &'static str = "copy";

    fn since(&self) -> Time {
        self.since
    }

    async fn has(&mut self, _: &SessionId, head: Seq) -> bool {
        head <= self.has
    }

    async fn update(&mut self, session: &SessionId, _: Change) -> Result<(), ProjectionError> {
        let mut log = self.log.lock().unwrap();
        log.push(session.to_string());
        if log.len() == self.stop_after {
            self.stop.cancel();
        }
        match self.failures.checked_sub(1) {
            Some(left) => {
                self.failures = left;
                Err(std::io::Error::other("disk full").into())
            }
            None => Ok(()),
        }
    }

    async fn checkpoint(&mut self, since: Time) -> Result<(), ProjectionError> {
        self.since = since;
        self.log.lock().unwrap().push(format!("since {}", since.micros() / 1_000_000));
        Ok(())
    }
}

fn seconds(seconds: i64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

fn session(n: i64) -> SessionId {
    SessionId::parse(&format!("s{n}")).unwrap()
}

fn summary(n: i64) -> SessionSummary {
    let summary = serde_json::json!({
        "id": session(n), "created": 0, "updated": seconds(n), "head": n, "status": "active",
        "workspace": "/", "system_prompt": null, "labels": {}, "last_turn": null, "error": null,
        "open": false,
    });
    serde_json::from_value(summary).unwrap()
}

fn sources(index: &Arc<Index>, feed: &ChangeFeed, projection: &RecordingProjection) -> Sources {
    Sources {
        changes: feed.subscribe(),
        sessions: index.clone(),
        clock: Arc::new(FixedClock),
        stop: projection.stop.clone(),
    }
}

async fn run_stopped(index: &Arc<Index>, projection: RecordingProjection) {
    projection.stop.cancel();
    run(projection.clone(), sources(index, &ChangeFeed::default(), &projection)).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_checks_changed_sessions_and_updates_outdated_ones() {
    let index = Index::new(10_000);
    let projection = RecordingProjection {
        since: seconds(9_990),
        has: 9_998,
        stop_after: 2,
        ..RecordingProjection::default()
    };
    run(projection.clone(), sources(&index, &ChangeFeed::default(), &projection)).await;
    let now = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    assert_eq!(projection.log(), ["s9999".into(), "s10000".into(), format!("since {now}")]);
    assert_eq!(*index.listed.lock().unwrap(), [64]);
}

#[tokio::test(start_paused = true)]
async fn the_position_is_stored_after_catching_up() {
    let index = Index::new(3);
    let projection =
        RecordingProjection { since: seconds(2), has: 2, ..RecordingProjection::default() };
    let running = run(projection.clone(), sources(&index, &ChangeFeed::default(), &projection));
    // Nothing changes afterwards, and the next checkpoint is far away.
    let a_second = tokio::time::timeout(Duration::from_secs(1), running).await;
    let now = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    assert!(a_second.is_err());
    assert_eq!(projection.log(), ["s3".into(), format!("since {now}")]);
}

#[tokio::test(start_paused = true)]
async fn more_changed_sessions_need_larger_pages() {
    let index = Index::new(300);
    let summaries = changed_since(&*index, seconds(101)).await.unwrap();
    assert_eq!((summaries.len(), summaries[199].updated), (200, seconds(101)));
    assert_eq!(changed_since(&*index, Time::default()).await.unwrap().len(), 300);
    assert_eq!(*index.listed.lock().unwrap(), [64, 256, 64, 256, 1024]);
}

#[tokio::test(start_paused = true)]
async fn stopping_interrupts_catching_up() {
    let index = Index::new(10_000);
    let projection = RecordingProjection { stop_after: 3, ..RecordingProjection::default() };
    run(projection.clone(), sources(&index, &ChangeFeed::default(), &projection)).await;
    // The next start begins at the same position.
    assert_eq!(projection.log(), ["s1", "s2", "s3", "since 0"]);
    let projection = RecordingProjection::default();
    run_stopped(&index, projection.clone()).await;
    assert_eq!(projection.log(), ["since 0"]);
}

#[tokio::test(start_paused = true)]
async fn failed_updates_are_retried_before_the_position_advances() {
    let (index, feed) = (Index::new(0), ChangeFeed::default());
    let projection = RecordingProjection {
        since: seconds(7),
        failures: 2,
        stop_after: 4,
        ..RecordingProjection::default()
    };
    let sources = sources(&index, &feed, &projection);
    feed.published(&session(1), 1);
    run(projection.clone(), sources).await;
    let later = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    let later = format!("since {later}");
    assert_eq!(projection.log(), ["s1", "s1", "since 7", "s1", &later]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stored_without_changes() {
    let index = Index::new(0);
    let projection = RecordingProjection::default();
    let running = run(projection.clone(), sources(&index, &ChangeFeed::default(), &projection));
    let an_hour = tokio::time::timeout(Duration::from_secs(3600), running).await;
    assert!(an_hour.is_err() && projection.log().is_empty());
}
