//! Limits the connections of a listener; an idle one is closed to make room for a new one.

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
/// Time for a connection to close when it makes room.
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
    /// The oldest first; some may be gone.
    connections: VecDeque<Weak<Activity>>,
}

/// The activity of a connection, which decides whether it can make room.
#[derive(Default)]
pub(crate) struct Activity {
    /// True once a request was read.
    has_request: AtomicBool,
    /// Requests that are being answered; a WebSocket counts as one for as long as it lasts.
    busy: AtomicUsize,
    pub(super) close_requested: Notify,
}

impl Activity {
    /// True once a request was read.
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

    /// A permit for a new connection; `None` if all connections are being answered.
    pub(crate) async fn admit(&mut self) -> Option<(OwnedSemaphorePermit, Arc<Activity>)> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => self.make_room().await?,
        };
        let activity = Arc::new(Activity::default());
        self.connections.push_back(Arc::downgrade(&activity));
        Some((permit, activity))
    }

    /// Closes the oldest connection that is not being answered.
    async fn make_room(&mut self) -> Option<OwnedSemaphorePermit> {
        self.connections.retain(|activity| activity.strong_count() > 0);
        let is_idle = |activity: &Weak<Activity>| {
            activity.upgrade().is_some_and(|activity| activity.busy.load(Ordering::SeqCst) == 0)
        };
        // A connection is asked to close only once: the next request may come before it is closed.
        let idle = self.connections.remove(self.connections.iter().position(is_idle)?)?;
        idle.upgrade().inspect(|activity| activity.close_requested.notify_one());
        timeout(CLOSE_TIMEOUT, Arc::clone(&self.permits).acquire_owned()).await.ok()?.ok()
    }
}

/// The permit of a connection that does not use HTTP. Until its first request is read, it may be closed to make
/// room for another; from then on it stays, like a WebSocket.
pub(crate) struct ConnectionPermit {
    activity: Arc<Activity>,
    answering: Option<Answering>,
    first_request_by: Instant,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    pub(crate) fn new((permit, activity): (OwnedSemaphorePermit, Arc<Activity>)) -> Self {
        let first_request_by = Instant::now() + HEAD_TIMEOUT;
        Self { activity, answering: None, first_request_by, _permit: permit }
    }

    /// Notes that a request was read.
    pub(crate) fn in_use(&mut self) {
        self.answering.get_or_insert_with(|| Answering::begin(&self.activity));
    }

    /// Waits until the connection has to go, because it makes room or sent nothing for too long; for
    /// ever once it is in use. Safe to drop and call again.
    pub(crate) async fn revoked(&self) {
        if self.answering.is_some() {
            return pending().await;
        }
        tokio::select! {
            () = self.activity.close_requested.notified() => {}
            () = sleep_until(self.first_request_by) => {}
        }
    }
}

/// A request that is being answered.
pub(super) struct Answering(Arc<Activity>);

impl Answering {
    pub(super) fn begin(activity: &Arc<Activity>) -> Self {
        activity.has_request.store(true, Ordering::SeqCst);
        activity.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(activity))
    }

    /// Keeps the permit until the body of the response was sent. A WebSocket only begins with its response.
    pub(super) fn until_sent(self, response: Response) -> Response {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.0.busy.fetch_add(1, Ordering::SeqCst);
            return response;
        }
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                let Self(_visit) = &self;
                frame
            }))
        })
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}
