//! The health service: whether the daemon can work, and metrics.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use quintet_kernel::Time;
use quintet_kernel::port::TurnOverhead;
use serde_json::{Value, json};

use super::dispatch::RECENT_LIMIT;
use super::serve::{AppState, Settings};
use crate::dialect::Services;
use crate::overhead::{self, Quantiles};

#[derive(Clone)]
struct HealthState {
    app: AppState,
}

/// The health service: `/health`, `/ready` and `/metrics`.
pub(super) fn health(services: Arc<Services>, settings: Settings) -> Router {
    let app = AppState::new(services, settings);
    let mut router = Router::new().route("/metrics", get(metrics));
    for path in ["/health", "/healthz", "/ready", "/readyz", "/"] {
        router = router.route(path, get(show));
    }
    router.with_state(HealthState { app })
}

async fn show(State(state): State<HealthState>) -> Response {
    let report = state.report().await;
    let (code, status) = match report.active {
        Ok(_) => (StatusCode::OK, "ok"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "unhealthy"),
    };
    (code, Json(report.to_json(status))).into_response()
}

async fn metrics(State(state): State<HealthState>) -> Response {
    let report = state.report().await;
    let mut text = format!(
        "# HELP quintet_up Whether the daemon can work.\n# TYPE quintet_up gauge\nquintet_up {}\n\
         # HELP quintet_uptime_seconds How long the daemon has been running.\n\
         # TYPE quintet_uptime_seconds gauge\nquintet_uptime_seconds {}\n\
         # HELP quintet_agent_connections WebSocket connections.\n\
         # TYPE quintet_agent_connections gauge\nquintet_agent_connections {}\n\
         # HELP quintet_active_sessions Sessions with an open turn, among the newest.\n\
         # TYPE quintet_active_sessions gauge\nquintet_active_sessions {}\n",
        u8::from(report.active.is_ok()),
        report.uptime,
        report.connections,
        report.active.as_ref().unwrap_or(&0),
    );
    text.push_str(&overhead_metrics(&state.app.services.overheads.recent_turns()));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

/// What the daemon added to recent turns; nothing before the first one.
fn overhead_metrics(turns: &[TurnOverhead]) -> String {
    if turns.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "# HELP quintet_turn_overhead_seconds Time that the daemon added to recent turns.\n\
         # TYPE quintet_turn_overhead_seconds gauge\n",
    );
    for (part, Quantiles { median, p95 }) in overhead::quantiles(turns) {
        for (quantile, time) in [("0.5", median), ("0.95", p95)] {
            let seconds = time.as_secs_f64();
            let labels = format!("part=\"{part}\",quantile=\"{quantile}\"");
            let _ = writeln!(text, "quintet_turn_overhead_seconds{{{labels}}} {seconds}");
        }
    }
    text
}

/// The state of the daemon.
struct HealthReport {
    now: Time,
    uptime: u64,
    connections: usize,
    /// Sessions with an open turn, or the reason why none can run.
    active: Result<usize, String>,
}

impl HealthState {
    async fn report(&self) -> HealthReport {
        let now = self.app.now();
        let recent = self.app.services.sessions.recent(None, RECENT_LIMIT).await;
        let open = recent.map(|summaries| summaries.iter().filter(|summary| summary.open).count());
        let closing = self.app.settings.closing.is_cancelled();
        let storage = self.app.services.storage_health.check().await;
        let active = match (closing, storage) {
            (true, _) => Err("shutting down".into()),
            (false, Err(error)) => Err(format!("storage cannot be written: {error}")),
            (false, Ok(())) => open.map_err(|error| error.to_string()),
        };
        let connections = self.app.settings.connections.load(Ordering::SeqCst);
        HealthReport { now, uptime: now.since(self.app.started).as_secs(), connections, active }
    }
}

impl HealthReport {
    fn to_json(&self, status: &str) -> Value {
        let healthy = if self.active.is_ok() { "healthy" } else { "unhealthy" };
        json!({
            "status": status,
            "version": env!("CARGO_PKG_VERSION"),
            "uptime": self.uptime,
            "uptime_secs": self.uptime,
            "timestamp": self.now.to_rfc3339_millis(),
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
