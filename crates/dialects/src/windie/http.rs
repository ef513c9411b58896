//! Requests over HTTP: the routes, who sent a request, and the JSON that comes with it.

mod artifacts;
mod embeddings;
mod install;
mod introspection;
mod ocr;
mod perception;
mod preview_request;
mod range;
pub(super) mod reply;
mod runs;
mod semantic;
mod vision;
mod written;

use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::auth::User;
use super::fields::{self, Object, Wrong};
use super::serve::AppState;
use crate::transport::body::{BodyError, read_body};
use crate::transport::query::parameters;
use reply::Reply;

/// The largest body that is JSON: an image of the largest size may stand in it.
const LARGEST_BODY: usize = 40 * 1024 * 1024;

/// What most requests are answered with.
type JsonReply = Result<Json<Value>, Reply>;

/// What a request is carried out with, and the user who sent it; none where users need not say who they
/// are.
struct Caller {
    app: AppState,
    user: Option<User>,
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Reply;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Reply> {
        Ok(Self { app: app.clone(), user: user_of(parts) })
    }
}

/// The user that [`identify`] found.
fn user_of(parts: &Parts) -> Option<User> {
    parts.extensions.get::<Option<User>>().cloned().flatten()
}

/// What answers requests of a method at a path.
struct Route<S> {
    /// For the test that compares the routes with `openapi.json`.
    #[cfg(test)]
    method: &'static str,
    path: &'static str,
    handler: MethodRouter<S>,
}

fn get<S: Clone + Send + Sync + 'static, T: 'static>(
    path: &'static str,
    handler: impl Handler<T, S>,
) -> Route<S> {
    Route {
        #[cfg(test)]
        method: "get",
        path,
        handler: routing::get(handler),
    }
}

fn post<S: Clone + Send + Sync + 'static, T: 'static>(
    path: &'static str,
    handler: impl Handler<T, S>,
) -> Route<S> {
    Route {
        #[cfg(test)]
        method: "post",
        path,
        handler: routing::post(handler),
    }
}

/// All routes; `openapi.json` describes the same ones.
fn routes() -> impl Iterator<Item = Route<AppState>> {
    let own = [
        get("/health", health),
        get("/openapi.json", async || Json(openapi())),
        post("/api/install/register", install::register),
        get("/api/install/me", install::me),
        post("/api/artifacts/", artifacts::upload),
        get("/api/artifacts/{artifact_id}", artifacts::fetch),
        post("/api/semantic/summarize", semantic::summarize),
        post("/api/semantic/title", semantic::name),
        get("/api/semantic/health", semantic::health),
        get("/api/sdk/models", introspection::models),
        get("/api/sdk/tool-schemas", introspection::tool_schemas),
        get("/api/sdk/tool-capabilities/{tool_name}", introspection::tool),
        get("/api/sdk/system-prompt", introspection::system_prompt),
        post("/api/sdk/prompt-preview", introspection::preview),
        post("/api/sdk/query-plan", introspection::query_plan),
        post("/api/runs/", runs::create),
        get("/api/runs/", runs::list),
        post("/api/runs/stop-all", runs::stop_all),
        post("/api/runs/workers/heartbeat", runs::poll),
        get("/api/runs/{run_id}", runs::show),
        get("/api/runs/{run_id}/events", runs::events),
        post("/api/runs/{run_id}/events", runs::report),
        post("/api/runs/{run_id}/control", runs::control),
        post("/api/runs/{run_id}/worker-dispatched", runs::dispatched),
        post("/api/runs/{run_id}/worker-heartbeat", runs::heartbeat),
    ];
    own.into_iter().chain(perception::routes())
}

/// Answers requests that may come in.
pub(super) fn router(app: &AppState) -> Router<AppState> {
    routed(routes()).layer(from_fn_with_state(app.clone(), identify))
}

/// A router for these routes. A slash at the end of a path changes nothing.
fn routed<S: Clone + Send + Sync + 'static>(routes: impl Iterator<Item = Route<S>>) -> Router<S> {
    let mut router = Router::new();
    for Route { path, handler, .. } in routes {
        let path = path.trim_end_matches('/');
        router = router.route(path, handler.clone()).route(&format!("{path}/"), handler);
    }
    let not_allowed = async || Reply::new(405, "Method Not Allowed");
    let not_found = async || Reply::new(404, "Not Found");
    router.method_not_allowed_fallback(not_allowed).fallback(not_found)
}

/// Everything below `/api` but the way to get a token is for those who have one.
async fn identify(
    State(app): State<AppState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Reply> {
    let path = request.uri().path();
    let user = if is_for_installs(path) && !is_registration(path) {
        app.identify(request.headers()).await?
    } else {
        None
    };
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

/// Whether a path is below `/api`.
pub(super) fn is_for_installs(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether a path is the way to get a token.
pub(super) fn is_registration(path: &str) -> bool {
    path.trim_end_matches('/') == "/api/install/register"
}

async fn health(State(app): State<AppState>) -> JsonReply {
    match app.ports.storage_health.check().await {
        Ok(()) => Ok(Json(json!({ "status": "healthy", "version": env!("CARGO_PKG_VERSION") }))),
        Err(error) => Err(Reply::new(503, format!("storage cannot be written: {error}"))),
    }
}

/// The OpenAPI document, kept as a file so that people can read it.
fn openapi() -> Value {
    serde_json::from_str(include_str!("openapi.json")).expect("openapi.json is checked by a test")
}

/// The JSON of a body of at most so many bytes, not looked at yet.
struct Body<const LIMIT_BYTES: usize = LARGEST_BODY>(Value);

impl<S: Sync, const LIMIT_BYTES: usize> FromRequest<S> for Body<LIMIT_BYTES> {
    type Rejection = Reply;

    async fn from_request(request: Request, _: &S) -> Result<Self, Reply> {
        let body =
            read_body(request.into_body(), LIMIT_BYTES).await.map_err(|error| match error {
                BodyError::Broken => Reply::new(400, "There was an error parsing the body"),
                BodyError::TooLarge => Reply::new(413, "Request body too large"),
            })?;
        Ok(Self::parse(&body)?)
    }
}

impl<const LIMIT_BYTES: usize> Body<LIMIT_BYTES> {
    fn parse(body: &[u8]) -> Result<Self, Wrong> {
        if body.is_empty() {
            return Err(Wrong::one(&["body".into()], "missing", "Field required"));
        }
        let json = serde_json::from_slice(body);
        json.map(Self).map_err(|error| {
            let place = ["body".into(), error.column().into()];
            Wrong::one(&place, "json_invalid", "JSON decode error")
        })
    }

    /// What the body says. Fails with everything that is wrong with it.
    fn read<T>(self, look: impl FnOnce(&Object<'_>) -> T) -> Result<T, Wrong> {
        fields::read("body", &self.0, look)
    }
}

/// What a query says. Fails with everything that is wrong with it.
fn read_query<T>(query: Option<&str>, look: impl FnOnce(&Object<'_>) -> T) -> Result<T, Wrong> {
    let mut members = Map::new();
    for (name, value) in parameters(query.unwrap_or_default()) {
        members.entry(name).or_insert(value.into());
    }
    fields::read("query", &members.into(), look)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

#[cfg(test)]
mod tests;
