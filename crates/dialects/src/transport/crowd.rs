//! How many connections a listener has, and which of them makes room for a new one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use http_body_util::BodyExt as _;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The most connections of one listener, if the process may open many files.
const MOST: usize = 512;
/// One listener takes no more than this part of the files that the process may open.
const SHARE: u64 = 16;
/// How long a client may take for the head of a request, the first or the next.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// How long a connection that makes room may take to go.
const LEAVING: Duration = Duration::from_secs(1);

/// How many connections one listener may have.
fn most() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / SHARE).unwrap_or(MOST).clamp(1, MOST)
}

/// The connections of a listener.
pub(super) struct Crowd {
    seats: Arc<Semaphore>,
    /// The oldest first; some may be gone.
    visits: VecDeque<Weak<Visit>>,
}

/// A connection, as far as it can be asked to make room.
#[derive(Default)]
pub(super) struct Visit {
    /// Whether a request was ever read.
    spoke: AtomicBool,
    /// How many are under way; a WebSocket is one for as long as it lasts.
    busy: AtomicUsize,
    pub(super) leave: Notify,
}

impl Visit {
    /// Whether a request was ever read.
    pub(super) fn spoke(&self) -> bool {
        self.spoke.load(Ordering::SeqCst)
    }
}

impl Crowd {
    pub(super) fn new() -> Self {
        Self { seats: Arc::new(Semaphore::new(most())), visits: VecDeque::new() }
    }

    /// A seat for a new connection; nothing if all are taken by those who are being answered.
    pub(super) async fn admit(&mut self) -> Option<(OwnedSemaphorePermit, Arc<Visit>)> {
        let seat = match Arc::clone(&self.seats).try_acquire_owned() {
            Ok(seat) => seat,
            Err(_) => self.make_room().await?,
        };
        let visit = Arc::new(Visit::default());
        self.visits.push_back(Arc::downgrade(&visit));
        Some((seat, visit))
    }

    /// Lets the oldest connection go that is not being answered.
    async fn make_room(&mut self) -> Option<OwnedSemaphorePermit> {
        self.visits.retain(|visit| visit.strong_count() > 0);
        let is_idle = |visit: &Weak<Visit>| {
            visit.upgrade().is_some_and(|visit| visit.busy.load(Ordering::SeqCst) == 0)
        };
        // Nobody is asked twice: the next one may come before this one is quite gone.
        let idle = self.visits.remove(self.visits.iter().position(is_idle)?)?;
        idle.upgrade().inspect(|visit| visit.leave.notify_one());
        timeout(LEAVING, Arc::clone(&self.seats).acquire_owned()).await.ok()?.ok()
    }
}

/// A request that is being answered.
pub(super) struct Answering(Arc<Visit>);

impl Answering {
    pub(super) fn begin(visit: &Arc<Visit>) -> Self {
        visit.spoke.store(true, Ordering::SeqCst);
        visit.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(visit))
    }

    /// Ends when the body of the answer was handed over. A WebSocket only begins with its answer.
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
