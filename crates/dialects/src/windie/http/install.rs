//! Registration: issues a token, and returns the user of a token.

use axum::Json;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::HeaderMap;
use serde_json::json;

use super::reply::Reply;
use super::{Body, Caller, JsonReply, text};
use crate::windie::auth::fresh;
use crate::windie::serve::{AppState, Registration};

const SYSTEM_LIMIT: usize = 128;
const SECRET: &str = "x-windie-install-registration-secret";

/// `POST /api/install/register`: a new user with a new install.
pub(super) async fn register(State(app): State<AppState>, request: Request) -> JsonReply {
    may_register(&app.settings.registration, request.headers())?;
    let body = <Body>::from_request(request, &()).await?;
    let system = body.read(|body| {
        body.only("operating_system");
        body.text("operating_system", 0..=SYSTEM_LIMIT)
    })?;
    let (install, token) = fresh(app.now(), system);
    let (user, id) = (install.user.clone(), install.id.clone());
    app.ports.installs.register(install).await?;
    Ok(Json(json!({
        "success": true,
        "user_id": user,
        "install_id": id,
        "install_token": token,
    })))
}

fn may_register(registration: &Registration, headers: &HeaderMap) -> Result<(), Reply> {
    match registration {
        Registration::Open => Ok(()),
        Registration::Off => Err(Reply::new(403, "Install registration is disabled")),
        Registration::Secret(secret) => {
            let given = text(headers, SECRET).unwrap_or_default();
            let refused = || Reply::new(403, "Install registration secret is required");
            secret.matches(given).then_some(()).ok_or_else(refused)
        }
    }
}

/// `GET /api/install/me`: always by the token, also where other requests need none.
pub(super) async fn me(by: Caller, headers: HeaderMap) -> JsonReply {
    let user = match by.user {
        Some(user) => user,
        None => by.app.authenticate(&headers).await?,
    };
    Ok(Json(json!({ "success": true, "user_id": user.id, "install_id": user.install })))
}
