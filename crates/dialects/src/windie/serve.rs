//! The listener: the services it uses, its setup, and its access rules.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use quintet_kernel::Time;
use quintet_kernel::model::ModelRef;
use tokio::sync::Mutex;

use super::agent::tool_selection::Abilities;
use super::artifacts::ArtifactStore;
use super::encode::OptionalEvents;
use super::http::reply::Reply;
use super::wire::Voice;
use super::ws::acknowledged::Acknowledged;
use super::ws::active_turns::Turns;
use super::ws::early_stops::EarlyStops;
use super::ws::transcription;
use super::{http, ws};
use crate::dialect::Services;
use crate::transport::access::{Denied, Token};

/// The largest message that is read at all: larger than what is accepted, so that the client gets an error
/// and not a closed connection.
const READ_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// How the dialect is set up.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of users who chose none.
    pub default_model: ModelRef,
    /// True if requests must carry an install token; otherwise the user id of a request is trusted.
    pub install_auth: bool,
    /// The rule for registering.
    pub registration: Registration,
    /// The key of the runs API, which is off without one.
    pub runs_key: Option<Token>,
    /// The key of `stop-all`; `runs_key` is used if there is none.
    pub runs_control_key: Option<Token>,
    /// The key of the internal embedding service, which is off without one.
    pub embedding_key: Option<Token>,
    /// The most bytes that an artifact may have.
    pub largest_artifact: u64,
    /// How long an artifact is kept that no session refers to; `None` is for ever.
    pub keep_artifacts: Option<Duration>,
    /// The parent of the users' scratch folders, for conversations without a folder of this machine.
    pub workspace: PathBuf,
    /// Optional events that clients are sent.
    pub optional_events: OptionalEvents,
}

/// The rule for registering installs.
#[derive(Clone, Debug)]
pub(super) enum Registration {
    /// Every client that can reach the listener.
    Open,
    /// Clients that send the secret.
    Secret(Token),
    /// No client.
    Off,
}

/// The state that requests share.
#[derive(Clone)]
pub(super) struct AppState {
    pub(super) ports: Arc<Services>,
    pub(super) settings: Arc<Settings>,
    pub(super) artifact_store: ArtifactStore,
    /// The open turns.
    pub(super) turns: Arc<Turns>,
    /// The ends of turns that clients have seen.
    pub(super) acknowledged: Arc<Acknowledged>,
    /// Stops that arrived before their queries.
    pub(super) stops: Arc<EarlyStops>,
    /// Held while settings are read and written back: one change at a time.
    pub(super) settings_lock: Arc<Mutex<()>>,
}

impl AppState {
    /// What the daemon can do for agents now; model weights may have been installed since it started.
    pub(super) fn abilities(&self) -> Abilities {
        let ports = &*self.ports;
        Abilities {
            web_search: ports.web_search.clone(),
            tools: ports.unattended_tools.clone(),
            ocr: ports.ocr.ready().is_ok(),
            vision: ports.has_vision_model && ports.vision.ready().is_ok(),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.ports.clock.now()
    }

    /// Whether speech can be synthesized and transcribed now.
    pub(super) fn voice(&self) -> Voice {
        Voice {
            speech: self.ports.speaker.ready().is_ok(),
            transcription: self.ports.transcriber.ready().is_ok(),
        }
    }
}

/// The dialect as a service.
pub(super) fn service(ports: Arc<Services>, settings: Arc<Settings>) -> Router {
    let artifact_store = ArtifactStore::new(&ports);
    let (turns, acknowledged, stops, settings_lock) = Default::default();
    let app =
        AppState { ports, settings, artifact_store, turns, acknowledged, stops, settings_lock };
    http::router(&app)
        .route("/ws", get(connect))
        .route("/ws/transcription", get(transcription::connect))
        // Every family of requests has its own limit.
        .layer(DefaultBodyLimit::disable())
        .with_state(app)
}

async fn connect(
    State(app): State<AppState>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let upgrade = upgrade.max_message_size(READ_BYTES_LIMIT).max_frame_size(READ_BYTES_LIMIT);
    upgrade.on_upgrade(|socket| ws::run(app, headers, socket))
}

/// The answer to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    Reply::new(denied.status(), denied.to_string()).into_response()
}

impl Settings {
    /// The test for paths at which the protocol itself checks a token or a key.
    pub(super) fn has_own_auth(&self) -> fn(&str) -> bool {
        match (self.install_auth, &self.registration) {
            (true, Registration::Secret(_)) => {
                |path| http::is_for_installs(path) || is_socket(path)
            }
            (true, Registration::Open | Registration::Off) => |path| {
                (http::is_for_installs(path) && !http::is_registration(path)) || is_socket(path)
            },
            (false, _) => |_| false,
        }
    }
}

fn is_socket(path: &str) -> bool {
    matches!(path, "/ws" | "/ws/transcription")
}
