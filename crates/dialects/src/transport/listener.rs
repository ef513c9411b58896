//! Serves HTTP and WebSockets at an address, within the access policy and the connection limit.
//!
//! A connection without a request in progress may be closed to accept a new one, so that no client can keep
//! others out by holding connections. A connection that sends nothing for too long is closed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::access::peer::{Ends, LocatedPeer};
use super::access::{Access, Admitted, Denied};
use super::connection_limit::{ActiveRequest, Activity, ConnectionLimit, HEAD_TIMEOUT};

/// The most bytes that the head of a request may have.
const HEAD_LIMIT: usize = 64 * 1024;
/// Delay after a failed accept.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The response when the connection limit is reached.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
                      content-length: 20\r\n\r\ntoo many connections";

/// Serves a protocol until it is cancelled; requests in progress are completed.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    access: Access,
    closing: CancellationToken,
) {
    let access = Arc::new(access);
    let (mut connections, mut tasks) = (ConnectionLimit::new(), JoinSet::new());
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    let Some((permit, activity)) = connections.admit().await else {
                        let _ = stream.try_write(TOO_MANY_CONNECTIONS);
                        continue;
                    };
                    let Ok(local) = stream.local_addr() else { continue };
                    let (access, router) = (Arc::clone(&access), router.clone());
                    let accepted = Accepted { access, router, activity, ends: Ends::of(local, remote) };
                    tasks.spawn(accepted.run(stream, permit, closing.clone()));
                }
                Err(error) => {
                    tracing::error!(%error, "accepting a connection failed");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    // No new client can connect from here on.
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// An accepted connection, with what is needed to handle its requests.
struct Accepted {
    access: Arc<Access>,
    router: Router,
    activity: Arc<Activity>,
    ends: Ends,
}

impl Accepted {
    async fn run(
        self,
        stream: TcpStream,
        permit: OwnedSemaphorePermit,
        closing: CancellationToken,
    ) {
        // Deltas are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let ends = self.ends;
        let Ok(located) = spawn_blocking(move || ends.look_up()).await else { return };
        let activity = Arc::clone(&self.activity);
        let connection =
            Arc::new(Connection { accepted: self, located, peer_check: OnceCell::new() });
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let connection = Arc::clone(&connection);
            async move { Ok::<_, Infallible>(connection.respond(request.map(Body::new)).await) }
        });
        // The permit is held until the stream closes, which may become a WebSocket.
        let stream = InspectReader::new(stream, move |_| {
            let _permit = &permit;
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(HEAD_LIMIT);
        let connection = builder.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = closing.cancelled() => {}
            () = activity.close_requested.notified() => {}
        }
        connection.as_mut().graceful_shutdown();
        // A client that sent nothing is not waited for.
        if activity.has_request() {
            let _ = connection.await;
        }
    }
}

/// A connection whose peer was looked up.
struct Connection {
    accepted: Accepted,
    located: LocatedPeer,
    /// The decision about the peer, made with its first request.
    peer_check: OnceCell<Result<(), Denied>>,
}

impl Connection {
    async fn respond(&self, request: Request) -> Response {
        let active_request = ActiveRequest::start(&self.accepted.activity);
        let (head, body) = request.into_parts();
        let admitted = match self.check_peer().await {
            Ok(()) => self.accepted.access.admit(self.accepted.ends.local.ip(), &head),
            Err(denied) => Err(denied),
        };
        let request = Request::from_parts(head, body);
        let response = match admitted {
            Err(denied) => self.refuse(&denied),
            Ok(Admitted::Direct) => self.forward(request).await,
            Ok(Admitted::Page(origin)) => allow_origin(&origin, self.forward(request).await),
            Ok(Admitted::Preflight(origin)) => {
                allow_origin(&origin, StatusCode::NO_CONTENT.into_response())
            }
        };
        active_request.until_sent(response)
    }

    async fn check_peer(&self) -> Result<(), Denied> {
        let check = || async {
            let located = self.located;
            let peer = spawn_blocking(move || located.or_command()).await;
            let known = self.accepted.access.admit_peer(peer.unwrap_or(located.peer));
            if let Err(denied) = &known {
                tracing::warn!(ends = ?self.accepted.ends, "a connection was refused: {denied}");
            }
            known
        };
        self.peer_check.get_or_init(check).await.clone()
    }

    /// Refuses a request and closes its connection.
    fn refuse(&self, denied: &Denied) -> Response {
        let mut response = (self.accepted.access.refuse)(denied);
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    async fn forward(&self, request: Request) -> Response {
        match self.accepted.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Allows a page of this origin to read the response.
fn allow_origin(origin: &HeaderValue, mut response: Response) -> Response {
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
