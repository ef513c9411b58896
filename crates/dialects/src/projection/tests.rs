//! Projections: how much is read at a start, what is kept, and that a stop is heeded.

use std::path::Path;
use std::sync::Mutex;

use quintet_kernel::port::{BoxFuture, Follower, SessionObserver as _};
use quintet_kernel::stamp::Stamp;
use quintet_kernel::{Cursor, State};

use super::*;
use crate::change_feed::ChangeFeed;

/// Sessions of which the n-th changed at second n.
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

/// A clock that always shows the thousandth minute.
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

/// What became of a projection.
#[derive(Clone, Debug, Default)]
struct Copy {
    since: Time,
    /// Up to which event there are sessions.
    has: Seq,
    log: Arc<Mutex<Vec<String>>>,
    /// Updates fail so often.
    failures: usize,
    stop: CancellationToken,
    stop_after: usize,
}

impl Copy {
    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Projection for Copy {
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
                Err(std::io::Error::other("no room").into())
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

fn sources(index: &Arc<Index>, feed: &ChangeFeed, copy: &Copy) -> Sources {
    Sources {
        changes: feed.subscribe(),
        sessions: index.clone(),
        clock: Arc::new(FixedClock),
        stop: copy.stop.clone(),
    }
}

async fn run_to_the_end(index: &Arc<Index>, copy: Copy) {
    copy.stop.cancel();
    run(copy.clone(), sources(index, &ChangeFeed::default(), &copy)).await;
}

#[tokio::test(start_paused = true)]
async fn a_start_looks_at_what_changed_and_opens_what_is_behind() {
    let index = Index::new(10_000);
    let copy = Copy { since: seconds(9_990), has: 9_998, stop_after: 2, ..Copy::default() };
    run(copy.clone(), sources(&index, &ChangeFeed::default(), &copy)).await;
    let now = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    assert_eq!(copy.log(), ["s9999".into(), "s10000".into(), format!("since {now}")]);
    assert_eq!(*index.listed.lock().unwrap(), [64]);
}

#[tokio::test(start_paused = true)]
async fn the_position_is_kept_as_soon_as_a_start_has_caught_up() {
    let index = Index::new(3);
    let copy = Copy { since: seconds(2), has: 2, ..Copy::default() };
    let running = run(copy.clone(), sources(&index, &ChangeFeed::default(), &copy));
    // Nothing changes afterwards, and the next checkpoint is far away.
    let a_second = tokio::time::timeout(Duration::from_secs(1), running).await;
    let now = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    assert!(a_second.is_err());
    assert_eq!(copy.log(), ["s3".into(), format!("since {now}")]);
}

#[tokio::test(start_paused = true)]
async fn where_more_changed_more_is_asked_for() {
    let index = Index::new(300);
    let summaries = changed_since(&*index, seconds(101)).await.unwrap();
    assert_eq!((summaries.len(), summaries[199].updated), (200, seconds(101)));
    assert_eq!(changed_since(&*index, Time::default()).await.unwrap().len(), 300);
    assert_eq!(*index.listed.lock().unwrap(), [64, 256, 64, 256, 1024]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_what_is_left_to_catch_up() {
    let index = Index::new(10_000);
    let copy = Copy { stop_after: 3, ..Copy::default() };
    run(copy.clone(), sources(&index, &ChangeFeed::default(), &copy)).await;
    // The next start begins where this one did.
    assert_eq!(copy.log(), ["s1", "s2", "s3", "since 0"]);
    let copy = Copy::default();
    run_to_the_end(&index, copy.clone()).await;
    assert_eq!(copy.log(), ["since 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_tried_again_before_the_position_moves() {
    let (index, feed) = (Index::new(0), ChangeFeed::default());
    let copy = Copy { since: seconds(7), failures: 2, stop_after: 4, ..Copy::default() };
    let sources = sources(&index, &feed, &copy);
    feed.published(&session(1), 1);
    run(copy.clone(), sources).await;
    let later = now().before(PUBLISH_LIMIT).micros() / 1_000_000;
    let later = format!("since {later}");
    assert_eq!(copy.log(), ["s1", "s1", "since 7", "s1", &later]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_where_nothing_happened() {
    let index = Index::new(0);
    let copy = Copy::default();
    let running = run(copy.clone(), sources(&index, &ChangeFeed::default(), &copy));
    let an_hour = tokio::time::timeout(Duration::from_secs(3600), running).await;
    assert!(an_hour.is_err() && copy.log().is_empty());
}
