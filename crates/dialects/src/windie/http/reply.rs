//! Answers, and the shape that errors have: `{"detail": …}`.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use quintet_kernel::port::StorageError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::windie::auth::Refused;
use crate::windie::wire::user_settings::SettingsError;

/// An answer that is an error.
#[derive(Debug)]
pub(in crate::windie) struct Reply {
    status: u16,
    detail: Value,
    header: Option<(HeaderName, String)>,
}

impl Reply {
    /// A status and what it is about.
    pub(in crate::windie) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: Value::String(detail.into()), header: None }
    }

    /// A body or a query that is not as it should be, with all that is wrong with it.
    pub(in crate::windie) fn unprocessable(faults: Vec<Value>) -> Self {
        Self { status: 422, detail: Value::Array(faults), header: None }
    }

    /// A status with a detail that is more than words.
    pub(super) fn detailed(status: u16, detail: Value) -> Self {
        Self { status, detail, header: None }
    }

    pub(super) fn not_found() -> Self {
        Self::new(404, "Not Found")
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// With a header beside it.
    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }

    /// What it says, for whoever passes it on another way.
    #[cfg(test)]
    pub(in crate::windie) fn said(&self) -> (u16, &Value) {
        (self.status, &self.detail)
    }
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        let mut response = ok(&json!({ "detail": reply.detail }));
        let status = StatusCode::from_u16(reply.status);
        *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some((name, value)) = reply.header
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

impl From<Refused> for Reply {
    fn from(refused: Refused) -> Self {
        match &refused {
            Refused::Missing | Refused::Invalid => {
                Self::new(401, refused.message()).with(header::WWW_AUTHENTICATE, "Bearer")
            }
            Refused::Unavailable(error) => {
                tracing::error!(%error, "who is asking could not be looked up");
                Self::new(503, refused.message())
            }
        }
    }
}

/// What went wrong inside is for the log and not for clients.
impl From<StorageError> for Reply {
    fn from(error: StorageError) -> Self {
        tracing::error!(%error, "storage");
        Self::new(500, "Internal server error")
    }
}

impl From<SettingsError> for Reply {
    fn from(error: SettingsError) -> Self {
        tracing::error!(%error, "a user's settings");
        Self::new(500, error.to_string())
    }
}

/// An answer that is JSON.
pub(super) fn ok(body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).expect("our own types serialize");
    let mut response = Response::new(Body::from(body));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
