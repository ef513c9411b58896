//! The routes of the harness, and the document that describes them.

use quintet_kernel::SessionId;
use serde_json::Value;

use super::decode::{Reply, Route};
use crate::transport::routes::{ANY, PathParameters, Refusals, Row};

/// All routes.
pub(super) const ROUTES: &[Row<Route, Reply>] = &[
    ("GET", "/healthz", |_| Ok(Route::Health)),
    ("GET", "/openapi.json", |_| Ok(Route::OpenApi)),
    ("GET", "/v1/models", |_| Ok(Route::Models)),
    ("GET", "/v1/model-policy", |_| Ok(Route::Policy)),
    ("POST", "/v1/model-policy", |_| Ok(Route::SetPolicy)),
    ("GET", "/v1/workspace/tree", |_| Ok(Route::Folder)),
    ("POST", "/v1/sessions", |_| Ok(Route::CreateSession)),
    ("GET", "/v1/sessions", |_| Ok(Route::ListSessions)),
    ("GET", "/v1/sessions/{session}", |path| session(path).map(Route::GetSession)),
    ("POST", "/v1/sessions/{session}/messages", |path| session(path).map(Route::AddMessage)),
    ("GET", "/v1/sessions/{session}/events", |path| session(path).map(Route::Events)),
    ("POST", "/v1/sessions/{session}/approve", |path| session(path).map(Route::Approve)),
    ("POST", "/v1/sessions/{session}/cancel", |path| Ok(Route::Cancel(path.get("session").into()))),
    ("POST", "/v1/sessions/{session}/attachments", |path| session(path).map(Route::Attach)),
    ("POST", "/v1/sessions/{session}/mode", |path| session(path).map(Route::SetMode)),
    ("POST", "/v1/sessions/{session}/model", |path| session(path).map(Route::SetModel)),
    ("POST", "/v1/sessions/{session}/compact", |path| session(path).map(Route::Compact)),
    ("POST", "/v1/sessions/{session}/complete", |path| session(path).map(Route::Complete)),
    ("GET", "/v1/sessions/{session}/context", |path| session(path).map(Route::Context)),
    ("POST", "/v1/sessions/{session}/turns/{turn}/retry", |path| {
        Ok(Route::Retry(session(path)?, turn(path)))
    }),
    ("POST", "/v1/sessions/{session}/turns/{turn}/revert", |path| {
        Ok(Route::Revert(session(path)?, turn(path)))
    }),
    ("GET", "/v1/sessions/{session}/turns/{turn}/revert", |path| {
        Ok(Route::CheckRevert(session(path)?, turn(path)))
    }),
    ("POST", "/v1/sessions/{session}/turns/{turn}/reapply", |path| {
        Ok(Route::Reapply(session(path)?, turn(path)))
    }),
    ("GET", "/v1/sessions/{session}/turns/{turn}/changes", |path| {
        Ok(Route::Changes(session(path)?, turn(path)))
    }),
    // Clients of the original server show the reason to the user.
    ("GET", "/v1/runs", |_| Ok(Route::Runs)),
    ("POST", "/v1/runs", |_| Err(Reply::new(501, "spec runs are not supported"))),
    (ANY, "/v1/runs/{run}", no_run),
    (ANY, "/v1/runs/{run}/{*rest}", no_run),
    ("POST", "/v1/specs/generate", |_| Err(Reply::new(501, "generating specs is not supported"))),
];

/// The replies to all other requests.
pub(super) const REFUSALS: &Refusals<Reply> = &Refusals {
    unknown_path: |_| Reply::new(404, "unknown endpoint"),
    wrong_method: |_, _| Reply::bare(405),
};

/// The OpenAPI document.
pub(super) fn openapi() -> Value {
    serde_json::from_str(include_str!("openapi.json")).expect("openapi.json is checked by a test")
}

fn session(path: &PathParameters<'_>) -> Result<SessionId, Reply> {
    let id = path.get("session");
    SessionId::parse(id).ok_or_else(|| Reply::new(404, format!("session not found: {id}")))
}

fn turn(path: &PathParameters<'_>) -> String {
    path.get("turn").into()
}

fn no_run(path: &PathParameters<'_>) -> Result<Route, Reply> {
    Err(Reply::new(404, format!("run not found: {}", path.get("run"))))
}
