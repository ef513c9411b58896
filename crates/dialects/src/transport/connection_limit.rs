//! Limits the connections of a listener; an idle one is closed to accept a new one.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use http_body_util::BodyExt as _;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

/// The most connections of one listener, if the process may open many files.
const CONNECTIONS_LIMIT: usize = 512;
/// One listener uses at most this fraction of the files that the process may open.
const OPEN_FILES_SHARE: u64 = 16;
/// Time for the head of a request, the first or the next.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for an idle connection to close when a new one needs its place.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Connections that one listener may have.
fn connections_limit() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / OPEN_FILES_SHARE)
        .unwrap_or(CONNECTIONS_LIMIT)
        .clamp(1, CONNECTIONS_LIMIT)
}

/// The connections of a listener.
pub(crate) struct ConnectionLimit {
    permits: Arc<Semaphore>,
    /// The connections, oldest first; some may have ended.
    connections: VecDeque<Weak<Activity>>,
}

/// The activity of a connection, which decides whether it may be closed for a new one.
#[derive(Default)]
pub(crate) struct Activity {
    /// True after a request was read.
    has_request: AtomicBool,
    /// Requests in progress; a WebSocket counts as one until it is closed.
    busy: AtomicUsize,
    pub(super) close_requested: Notify,
}

impl Activity {
    /// True after a request was read.
    pub(super) fn has_request(&self) -> bool {
        self.has_request.load(Ordering::SeqCst)
    }
}

impl ConnectionLimit {
    pub(crate) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(connections_limit())),
            connections: VecDeque::new(),
        }
    }

    /// A permit for a new connection; `None` if all connections have requests in progress.
    pub(crate) async fn admit(&mut self) -> Option<(OwnedSemaphorePermit, Arc<Activity>)> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.close_idle().await?,
        };
        let activity = Arc::new(Activity::default());
        self.connections.push_back(Arc::downgrade(&activity));
        Some((permit, activity))
    }

    /// Closes the oldest idle connection.
    async fn close_idle(&mut self) -> Option<OwnedSemaphorePermit> {
        self.connections.retain(|activity| activity.strong_count() > 0);
        let is_idle = |activity: &Weak<Activity>| {
            activity.upgrade().is_some_and(|activity| activity.busy.load(Ordering::SeqCst) == 0)
        };
        // A connection is asked to close only once, because its next request may arrive before it closes.
        let idle = self.connections.remove(self.connections.iter().position(is_idle)?)?;
        idle.upgrade().inspect(|activity| activity.close_requested.notify_one());
        timeout(CLOSE_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await.ok()?.ok()
    }
}

/// The permit of a connection that does not use HTTP. Until its first request is read, it may be closed for
/// a new one; after that it stays, like a WebSocket.
pub(crate) struct ConnectionPermit {
    activity: Arc<Activity>,
    active_request: Option<ActiveRequest>,
    first_request_by: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    pub(crate) fn new((permit, activity): (OwnedSemaphorePermit, Arc<Activity>)) -> Self {
        let first_request_by = Instant::now() + HEAD_TIMEOUT;
        Self { activity, active_request: None, first_request_by, _permit: permit }
    }

    /// Records that a request was read.
    pub(crate) fn in_use(&mut self) {
        self.active_request.get_or_insert_with(|| ActiveRequest::start(&self.activity));
    }

    /// Waits until the connection must close, because a new one needs its place or nothing was sent for too
    /// long; for ever once it is in use. Cancel-safe.
    pub(crate) async fn revoked(&self) {
        if self.active_request.is_some() {
            return pending().await;
        }
        tokio::select! {
            () = self.activity.close_requested.notified() => {}
            () = sleep_until(self.first_request_by) => {}
        }
    }
}

/// A request in progress.
pub(super) struct ActiveRequest(Arc<Activity>);

impl ActiveRequest {
    pub(super) fn start(activity: &Arc<Activity>) -> Self {
        activity.has_request.store(true, Ordering::SeqCst);
        activity.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(activity))
    }

    /// Counts the request until the body of the response was sent. A WebSocket starts with its response.
    pub(super) fn until_sent(self, response: Response) -> Response {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0.busy.fetch_add(1, Ordering::SeqCst);
            return response;
        }
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let Self(_activity) = &self;
                frame
            }))
        })
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}
