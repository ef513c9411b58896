//! The HTTP service: its settings and routes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use quintet_kernel::Time;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use crate::dialect::Services;
use crate::transport::access::Denied;

/// The largest message, in bytes.
pub(super) const MESSAGE_BYTES_LIMIT: usize = 16 * 1024 * 1024;
/// The largest message that is read. Larger than the largest valid message, so that a client that sends too
/// much gets the reason: closing a connection with unread data may discard what was sent last.
const READ_LIMIT: usize = 2 * MESSAGE_BYTES_LIMIT;
/// The most connections at once.
const CONNECTIONS_LIMIT: usize = 256;

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of sessions that choose none.
    pub default_model: String,
    /// The user's home folder, if known.
    pub home: Option<PathBuf>,
    /// The names of all providers.
    pub providers: Vec<String>,
    /// Cancelled when the daemon shuts down.
    pub closing: CancellationToken,
    /// Connected clients.
    pub connections: Arc<AtomicUsize>,
    /// Interval between pings.
    pub ping: Duration,
    /// Time after which a silent client is disconnected.
    pub silence: Duration,
}

/// State that all connections share.
#[derive(Clone)]
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) settings: Arc<Settings>,
    pub(super) started: Time,
}

impl AppState {
    pub(super) fn new(services: Arc<Services>, settings: Settings) -> Self {
        let started = services.clock.now();
        Self { services, settings: Arc::new(settings), started }
    }

    pub(super) fn now(&self) -> Time {
        self.services.clock.now()
    }
}

/// The router of the WebSocket.
pub(super) fn router(services: Arc<Services>, settings: Settings) -> Router {
    let app = AppState::new(services, settings);
    Router::new().route("/", get(connect)).route("/ws", get(connect)).with_state(app)
}

async fn connect(
    State(app): State<AppState>,
    path: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Some(count) = ConnectionCount::add(&app.settings.connections) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many connections").into_response();
    };
    // Clients of the original server connect at this path.
    let greets = path.path() == "/ws";
    upgrade.max_message_size(READ_LIMIT).max_frame_size(READ_LIMIT).on_upgrade(
        move |socket| async move {
            Connection::new(app, greets).run(socket).await;
            drop(count);
        },
    )
}

/// Counts a connection for as long as it lasts.
struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    fn add(count: &Arc<AtomicUsize>) -> Option<Self> {
        let one_more = |count| (count < CONNECTIONS_LIMIT).then_some(count + 1);
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()?;
        Some(Self(Arc::clone(count)))
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The response to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    let code = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::FORBIDDEN);
    (code, denied.to_string()).into_response()
}
