//! The listener: who may connect, and what connections speak to.

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
use quintet_kernel::port::{
    Blobs, Branches, Models, Pulse, Rehearsals, Removals, Sessions, Stamps,
};
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use crate::change_feed::ChangeFeed;
use crate::transport::access::Denied;

/// The largest message that is taken.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// What is read at most. More than is taken, so that who sends too much can be told so for certain:
/// what is left unread on a connection may take the farewell with it.
const READ: usize = 2 * LARGEST;
/// Connections at once.
const CROWD: usize = 256;

/// What the dialect speaks to.
#[derive(Clone)]
pub(super) struct Ports {
    /// The core.
    pub sessions: Arc<dyn Sessions>,
    /// How sessions belong together.
    pub branches: Arc<dyn Branches>,
    /// What would become of commands.
    pub rehearsals: Arc<dyn Rehearsals>,
    /// Taking sessions away.
    pub removals: Arc<dyn Removals>,
    /// Where attachments go.
    pub blobs: Arc<dyn Blobs>,
    /// What can be chosen.
    pub models: Arc<dyn Models>,
    /// Whether storage can be written to.
    pub pulse: Arc<dyn Pulse>,
    /// What time it is.
    pub stamps: Arc<dyn Stamps>,
    /// Which sessions changed.
    pub changes: ChangeFeed,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

/// How the dialect is set up.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of sessions that name none.
    pub default_model: String,
    /// The home folder, where there is one.
    pub home: Option<PathBuf>,
    /// The names of all providers.
    pub providers: Vec<String>,
    /// Says that the daemon shuts down.
    pub closing: CancellationToken,
    /// How many are connected, for whoever wants to know.
    pub connections: Arc<AtomicUsize>,
    /// How often a client is asked whether it is there.
    pub ping: Duration,
    /// How long it may be silent.
    pub silence: Duration,
}

/// Where requests are carried out.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) ports: Ports,
    pub(super) settings: Arc<Settings>,
    pub(super) began: Time,
}

impl Desk {
    pub(super) fn new(ports: Ports, settings: Settings) -> Self {
        let began = ports.stamps.now();
        Self { ports, settings: Arc::new(settings), began }
    }

    pub(super) fn now(&self) -> Time {
        self.ports.stamps.now()
    }
}

/// The dialect as a service.
pub(super) fn router(ports: Ports, settings: Settings) -> Router {
    let desk = Desk::new(ports, settings);
    Router::new().route("/", get(connect)).route("/ws", get(connect)).with_state(desk)
}

async fn connect(
    State(desk): State<Desk>,
    path: Uri,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Some(seat) = Seat::take(&desk.settings.connections) else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many connections").into_response();
    };
    // Clients of the original server come this way.
    let greets = path.path() == "/ws";
    upgrade.max_message_size(READ).max_frame_size(READ).on_upgrade(move |socket| async move {
        Connection::new(desk, greets).run(socket).await;
        drop(seat);
    })
}

/// A connection, counted for as long as it lasts.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(taken: &Arc<AtomicUsize>) -> Option<Self> {
        let one_more = |taken| (taken < CROWD).then_some(taken + 1);
        taken.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).ok()?;
        Some(Self(Arc::clone(taken)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a request is refused.
pub(super) fn refuse(denied: &Denied) -> Response {
    let code = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::FORBIDDEN);
    (code, denied.to_string()).into_response()
}
