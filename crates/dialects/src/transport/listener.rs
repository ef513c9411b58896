//! Serves HTTP and WebSockets at an address: lets in whom the policy admits, and not too many.
//!
//! A connection without a request under way may have to make room for a new one, so that nobody keeps
//! others out by holding connections. Whoever says nothing for too long is let go.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::access::peer::{Ends, Found};
use super::access::{Access, Admitted, Denied};

/// The most connections of one listener, if the process may open many files.
const MOST: usize = 512;
/// One listener takes no more than this part of the files that the process may open.
const SHARE: u64 = 16;
/// How long a client may take for the head of a request, the first or the next.
const SILENCE: Duration = Duration::from_secs(30);
/// The most bytes that the head of a request may have.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long a connection that makes room may take to go.
const LEAVING: Duration = Duration::from_secs(1);
/// How long to leave the listener alone after it failed.
const BREATH: Duration = Duration::from_millis(100);
/// What is said where there is no room.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
                      content-length: 20\r\n\r\ntoo many connections";

/// Serves a protocol until told to stop; requests under way are still answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    access: Access,
    closing: CancellationToken,
) {
    let access = Arc::new(access);
    let (mut crowd, mut tasks) = (Crowd::new(most()), JoinSet::new());
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    let Some((seat, visit)) = crowd.admit().await else {
                        let _ = stream.try_write(FULL);
                        continue;
                    };
                    let Ok(local) = stream.local_addr() else { continue };
                    let (access, router) = (Arc::clone(&access), router.clone());
                    let door = Door { access, router, visit, ends: Ends::of(local, remote) };
                    tasks.spawn(door.converse(stream, seat, closing.clone()));
                }
                Err(error) => {
                    tracing::error!(%error, "a listener does not accept");
                    sleep(BREATH).await;
                }
            },
        }
    }
    // Nobody new finds it from here on.
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// How many connections one listener may have.
fn most() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(files / SHARE).unwrap_or(MOST).clamp(1, MOST)
}

/// The connections of a listener.
struct Crowd {
    seats: Arc<Semaphore>,
    /// The oldest first; some may be gone.
    visits: VecDeque<Weak<Visit>>,
}

/// A connection, as far as it can be asked to make room.
#[derive(Default)]
struct Visit {
    /// Whether a request was ever read.
    spoke: AtomicBool,
    /// How many are under way; a WebSocket is one for as long as it lasts.
    busy: AtomicUsize,
    leave: Notify,
}

impl Crowd {
    fn new(most: usize) -> Self {
        Self { seats: Arc::new(Semaphore::new(most)), visits: VecDeque::new() }
    }

    /// A seat for a new connection; nothing if all are taken by those who are being answered.
    async fn admit(&mut self) -> Option<(OwnedSemaphorePermit, Arc<Visit>)> {
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
        let visits = self.visits.iter().filter_map(Weak::upgrade);
        let idle = visits.into_iter().find(|visit| visit.busy.load(Ordering::SeqCst) == 0)?;
        idle.leave.notify_one();
        drop(idle);
        timeout(LEAVING, Arc::clone(&self.seats).acquire_owned()).await.ok()?.ok()
    }
}

/// A request that is being answered.
struct Answering(Arc<Visit>);

impl Answering {
    fn begin(visit: &Arc<Visit>) -> Self {
        visit.spoke.store(true, Ordering::SeqCst);
        visit.busy.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(visit))
    }

    /// Ends when the body of the answer was handed over. A WebSocket only begins with its answer.
    fn until_sent(self, response: Response) -> Response {
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

/// What a connection comes through.
struct Door {
    access: Arc<Access>,
    router: Router,
    visit: Arc<Visit>,
    ends: Ends,
}

impl Door {
    async fn converse(
        self,
        stream: TcpStream,
        seat: OwnedSemaphorePermit,
        closing: CancellationToken,
    ) {
        // Deltas are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let ends = self.ends;
        let Ok(found) = spawn_blocking(move || ends.look_up()).await else { return };
        let visit = Arc::clone(&self.visit);
        let guest = Arc::new(Guest { door: self, found, known: OnceCell::new() });
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let guest = Arc::clone(&guest);
            async move { Ok::<_, Infallible>(guest.answer(request.map(Body::new)).await) }
        });
        // The seat is taken for as long as the stream lasts, which may become a WebSocket.
        let stream = InspectReader::new(stream, move |_| {
            let _seat = &seat;
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(SILENCE).max_buf_size(LARGEST_HEAD);
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = closing.cancelled() => {}
            () = visit.leave.notified() => {}
        }
        connection.as_mut().graceful_shutdown();
        // Whoever never spoke would be waited for.
        if visit.spoke.load(Ordering::SeqCst) {
            let _ = connection.await;
        }
    }
}

/// Somebody who came in.
struct Guest {
    door: Door,
    found: Found,
    /// Whether he is answered at all; found out with his first request.
    known: OnceCell<Result<(), Denied>>,
}

impl Guest {
    async fn answer(&self, request: Request) -> Response {
        let answering = Answering::begin(&self.door.visit);
        let (head, body) = request.into_parts();
        let admitted = match self.known().await {
            Ok(()) => self.door.access.admit(self.door.ends.local.ip(), &head),
            Err(denied) => Err(denied),
        };
        let request = Request::from_parts(head, body);
        let response = match admitted {
            Err(denied) => self.refuse(&denied),
            Ok(Admitted::Answer) => self.pass_on(request).await,
            Ok(Admitted::Page(origin)) => open_to(&origin, self.pass_on(request).await),
            Ok(Admitted::Preflight(origin)) => {
                open_to(&origin, StatusCode::NO_CONTENT.into_response())
            }
        };
        answering.until_sent(response)
    }

    async fn known(&self) -> Result<(), Denied> {
        let find_out = || async {
            let found = self.found;
            let peer = spawn_blocking(move || found.or_command()).await;
            let known = self.door.access.knows(peer.unwrap_or(found.peer));
            if let Err(denied) = &known {
                tracing::warn!(ends = ?self.door.ends, "a connection was refused: {denied}");
            }
            known
        };
        self.known.get_or_init(find_out).await.clone()
    }

    /// Whoever is refused does not keep the connection.
    fn refuse(&self, denied: &Denied) -> Response {
        let mut response = (self.door.access.refuse)(denied);
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    async fn pass_on(&self, request: Request) -> Response {
        match self.door.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// A page of this origin may read the answer.
fn open_to(origin: &HeaderValue, mut response: Response) -> Response {
    let headers: &mut HeaderMap = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    for (name, value) in [
        (header::VARY, "Origin"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, Content-Type, Last-Event-ID"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
