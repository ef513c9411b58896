//! Whether the daemon can work, for whoever watches over it.

use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use quintet_kernel::Time;
use serde_json::{Value, json};

use super::dispatch::RECENT_LIMIT;
use super::serve::{AppState, Ports, Settings};

#[derive(Clone)]
struct Watch {
    app: AppState,
}

/// The health service: `/health`, `/ready` and `/metrics`.
pub(super) fn health(ports: Ports, settings: Settings) -> Router {
    let app = AppState::new(ports, settings);
    let mut router = Router::new().route("/metrics", get(metrics));
    for path in ["/health", "/healthz", "/ready", "/readyz", "/"] {
        router = router.route(path, get(show));
    }
    router.with_state(Watch { app })
}

async fn show(State(watch): State<Watch>) -> Response {
    let look = watch.look().await;
    let (code, status) = match look.active {
        Ok(_) => (StatusCode::OK, "ok"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    (code, Json(look.shown(status))).into_response()
}

async fn metrics(State(watch): State<Watch>) -> Response {
    let look = watch.look().await;
    let text = format!(
        "# HELP quintet_up Whether the daemon can work.\n# TYPE quintet_up gauge\nquintet_up {}\n\
         # HELP quintet_uptime_seconds How long it has been running.\n\
         # TYPE quintet_uptime_seconds gauge\nquintet_uptime_seconds {}\n\
         # HELP quintet_agent_connections WebSocket connections.\n\
         # TYPE quintet_agent_connections gauge\nquintet_agent_connections {}\n\
         # HELP quintet_active_sessions Sessions at work, of the newest.\n\
         # TYPE quintet_active_sessions gauge\nquintet_active_sessions {}\n",
        u8::from(look.active.is_ok()),
        look.uptime,
        look.connections,
        look.active.as_ref().unwrap_or(&0),
    );
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// How things stand.
struct Look {
    now: Time,
    uptime: u64,
    connections: usize,
    /// Sessions at work, or why nothing can be.
    active: Result<usize, String>,
}

impl Watch {
    async fn look(&self) -> Look {
        let now = self.app.now();
        let recent = self.app.ports.branches.recent(None, RECENT_LIMIT).await;
        let open = recent.map(|cards| cards.iter().filter(|card| card.open).count());
        let closing = self.app.settings.closing.is_cancelled();
        let beat = self.app.ports.pulse.beat().await;
        let active = match (closing, beat) {
            (true, _) => Err("shutting down".into()),
            (false, Err(error)) => Err(format!("storage cannot be written: {error}")),
            (false, Ok(())) => open.map_err(|error| error.to_string()),
        };
        let connections = self.app.settings.connections.load(Ordering::SeqCst);
        Look { now, uptime: now.since(self.app.began).as_secs(), connections, active }
    }
}

impl Look {
    fn shown(&self, status: &str) -> Value {
        let healthy = if self.active.is_ok() { "healthy" } else { "unhealthy" };
        json!({
            "status": status,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime": self.uptime,
            "uptime_secs": self.uptime,
            "timestamp": self.now.to_millis(),
            "connections": self.connections,
            "active_sessions": self.active.as_ref().ok(),
            "error": self.active.as_ref().err(),
            "components": {
                "orchestrator": { "status": healthy, "activeSessions": self.active.as_ref().ok() },
                "websocket": { "status": "healthy", "connectedClients": self.connections },
            },
        })
    }
}
