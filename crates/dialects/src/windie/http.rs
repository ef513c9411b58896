//! Requests over HTTP: the routes, the user of a request, and the JSON of its body or query.

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
use axum::routing::{MethodFilter, MethodRouter, on};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::auth::User;
use super::fields::{self, Object, Wrong};
use super::serve::AppState;
use crate::transport::body::{BodyError, read_body};
use crate::transport::query::parameters;
use reply::Reply;

/// The largest JSON body: it may contain an image of the largest size.
const LARGEST_BODY: usize = 40 * 1024 * 1024;

/// The answer to most requests.
type JsonReply = Result<Json<Value>, Reply>;

/// The state that a request is handled with, and its user; none while `install_auth` is off.
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

/// A method and a path, and their handler.
type Route<S> = (&'static str, MethodRouter<S>);

/// A route like `GET /health`.
fn route<S, T>(name: &'static str, handler: impl Handler<T, S>) -> Route<S>
where
    S: Clone + Send + Sync + 'static,
    T: 'static,
{
    let method = if name.starts_with("GET ") { MethodFilter::GET } else { MethodFilter::POST };
    (name, on(method, handler))
}

/// All routes; `openapi.json` describes the same ones.
fn routes() -> impl Iterator<Item = Route<AppState>> {
    let own = [
        route("GET /health", health),
        route("GET /openapi.json", async || Json(openapi())),
        route("POST /api/install/register", install::register),
        route("GET /api/install/me", install::me),
        route("POST /api/artifacts/", artifacts::upload),
        route("GET /api/artifacts/{artifact_id}", artifacts::fetch),
        route("POST /api/semantic/summarize", semantic::summarize),
        route("POST /api/semantic/title", semantic::name),
        route("GET /api/semantic/health", semantic::health),
        route("GET /api/sdk/models", introspection::models),
        route("GET /api/sdk/tool-schemas", introspection::tool_schemas),
        route("GET /api/sdk/tool-capabilities/{tool_name}", introspection::tool),
        route("GET /api/sdk/system-prompt", introspection::system_prompt),
        route("POST /api/sdk/prompt-preview", introspection::preview),
        route("POST /api/sdk/query-plan", introspection::query_plan),
        route("POST /api/runs/", runs::create),
        route("GET /api/runs/", runs::list),
        route("POST /api/runs/stop-all", runs::stop_all),
        route("POST /api/runs/workers/heartbeat", runs::poll),
        route("GET /api/runs/{run_id}", runs::show),
        route("GET /api/runs/{run_id}/events", runs::events),
        route("POST /api/runs/{run_id}/events", runs::report),
        route("POST /api/runs/{run_id}/control", runs::control),
        route("POST /api/runs/{run_id}/worker-dispatched", runs::dispatched),
        route("POST /api/runs/{run_id}/worker-heartbeat", runs::heartbeat),
    ];
    own.into_iter().chain(perception::routes())
}

/// The router of all requests, which identifies their users.
pub(super) fn router(app: &AppState) -> Router<AppState> {
    routed(routes()).layer(from_fn_with_state(app.clone(), identify))
}

/// A router for these routes, each with and without a slash at its end.
fn routed<S: Clone + Send + Sync + 'static>(routes: impl Iterator<Item = Route<S>>) -> Router<S> {
    let mut router = Router::new();
    for (name, handler) in routes {
        let path = name.trim_start_matches(|c| c != '/').trim_end_matches('/');
        router = router.route(path, handler.clone()).route(&format!("{path}/"), handler);
    }
    let not_allowed = async || Reply::new(405, "Method Not Allowed");
    let not_found = async || Reply::new(404, "Not Found");
    router.method_not_allowed_fallback(not_allowed).fallback(not_found)
}

/// Identifies the user of a request below `/api`, except for registration.
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

/// True if a path is below `/api`.
pub(super) fn is_for_installs(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// True for the path that issues tokens.
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

/// The JSON of a body of at most so many bytes, not validated.
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

    /// Reads the body. Fails with all of its faults.
    fn read<T>(self, look: impl FnOnce(&Object<'_>) -> T) -> Result<T, Wrong> {
        fields::read("body", &self.0, look)
    }
}

/// Reads the query of a URL. Fails with all of its faults.
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
