//! Requests: who sent them, what they are about, and their answers.

mod artifacts;
mod asked;
mod embeddings;
pub(super) mod fields;
mod install;
mod introspection;
mod ocr;
mod perception;
mod range;
pub(super) mod reply;
mod route;
mod runs;
mod semantic;
mod sense_error;
mod service_key;
mod vision;
mod written;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::json;

use super::auth::User;
use super::openapi;
use super::serve::AppState;
use crate::transport::body::{Unread, whole};
use fields::Fields;
use perception::Perception;
use reply::{Reply, ok};
use route::{About, Route, route};
use service_key::{EMBEDDINGS, require_key};

/// The largest body that is JSON: an image of the largest size may stand in it.
const LARGEST_BODY: usize = 40 * 1024 * 1024;

/// Answers a request that may come in.
pub(super) async fn answer(app: &AppState, request: Request) -> Result<Response, Reply> {
    let path = request.uri().path().to_owned();
    let user = caller(app, &path, request.headers()).await?;
    match route(request.method().as_str(), &path)? {
        Route::Health => health(app).await,
        Route::OpenApi => Ok(ok(&openapi::document())),
        Route::Register => install::register(app, request).await,
        Route::Me => install::me(app, user, request.headers()).await,
        Route::Upload => artifacts::upload(app, user.as_ref(), request).await,
        Route::Artifact(id) => {
            artifacts::fetch(app, user.as_ref(), &id, &request.into_parts().0).await
        }
        Route::Summarize => semantic::summarize(app, request).await,
        Route::Title => semantic::name(app, request).await,
        Route::SemanticHealth => Ok(semantic::health()),
        Route::Sdk(about) => introspect(app, user.as_ref(), about, request).await,
        Route::Perception(route) => {
            let context = Perception {
                ocr: &*app.ports.ocr,
                vision: &*app.ports.vision,
                artifacts: &app.artifact_store,
                user: user.as_ref(),
                size_limit: app.settings.largest_artifact,
            };
            perception::answer(&context, route, request).await
        }
        Route::Embeddings => embeddings::embed_text(&*app.ports.embedder, request).await,
        Route::EmbeddingsHealth => embeddings::health(&*app.ports.embedder),
        Route::Embed => {
            let key = app.settings.embedding_key.as_ref();
            require_key(key, request.headers(), &EMBEDDINGS)?;
            embeddings::embed_batch(&*app.ports.embedder, request).await
        }
        Route::Runs(run) => runs::answer(app, run, request).await,
    }
}

async fn introspect(
    app: &AppState,
    user: Option<&User>,
    about: About,
    request: Request,
) -> Result<Response, Reply> {
    let query = request.uri().query().unwrap_or_default().to_owned();
    match about {
        About::Models => introspection::models(app, user, &query).await,
        About::Tools => introspection::tool_schemas(app, user, &query).await,
        About::Tool(name) => introspection::tool(app, user, (&name, &query)).await,
        About::SystemPrompt => introspection::system_prompt(app, user, &query).await,
        About::Preview => introspection::preview(app, user, request).await,
        About::QueryPlan => introspection::query_plan(app, user, request).await,
    }
}

async fn health(app: &AppState) -> Result<Response, Reply> {
    match app.ports.storage_health.check().await {
        Ok(()) => Ok(ok(&json!({ "status": "healthy", "version": env!("CARGO_PKG_VERSION") }))),
        Err(error) => Err(Reply::new(503, format!("storage cannot be written: {error}"))),
    }
}

/// Everything below `/api` but the way to get a token is for those who have one.
async fn caller(app: &AppState, path: &str, headers: &HeaderMap) -> Result<Option<User>, Reply> {
    if is_for_installs(path) && !is_registration(path) {
        Ok(app.identify(headers).await?)
    } else {
        Ok(None)
    }
}

/// Whether a path is below `/api`.
pub(super) fn is_for_installs(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether a path is the way to get a token.
pub(super) fn is_registration(path: &str) -> bool {
    path.trim_end_matches('/') == "/api/install/register"
}

/// The members of a body.
async fn body(request: Request) -> Result<Fields, Reply> {
    body_within(request, LARGEST_BODY).await
}

/// The members of a body that has at most so many bytes.
async fn body_within(request: Request, limit: usize) -> Result<Fields, Reply> {
    let body = whole(request.into_body(), limit).await.map_err(|unread| match unread {
        Unread::Broken => Reply::new(400, "There was an error parsing the body"),
        Unread::TooLarge => Reply::new(413, "Request body too large"),
    })?;
    Fields::of_body(&body)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
