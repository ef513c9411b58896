//! How installs come by a token, and learn whose it is.

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::json;

use super::reply::{Reply, ok};
use super::{body, text};
use crate::windie::auth::{User, fresh};
use crate::windie::serve::{AppState, Registration};

/// The longest name of a system.
const LONGEST_SYSTEM: usize = 128;
const SECRET: &str = "x-windie-install-registration-secret";

/// `POST /api/install/register`: a new user with a new install.
pub(super) async fn register(app: &AppState, request: Request) -> Result<Response, Reply> {
    may_register(&app.settings.registration, request.headers())?;
    let mut fields = body(request).await?;
    let system = fields.maybe_text("operating_system", 0..=LONGEST_SYSTEM);
    fields.whole()?;
    let (install, token) = fresh(app.now(), system);
    let (user, id) = (install.user.clone(), install.id.clone());
    app.ports.installs.register(install).await?;
    Ok(ok(&json!({
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

/// `GET /api/install/me`: always by the token, also where nobody else has to bring one.
pub(super) async fn me(
    app: &AppState,
    user: Option<User>,
    headers: &HeaderMap,
) -> Result<Response, Reply> {
    let user = match user {
        Some(user) => user,
        None => app.authenticate(headers).await?,
    };
    Ok(ok(&json!({ "success": true, "user_id": user.id, "install_id": user.install })))
}
