//! Answers, and the shape that errors have: `{"detail": …}`.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quintet_kernel::port::{SenseError, StorageError};
use serde_json::{Value, json};

use crate::windie::auth::Refused;
use crate::windie::fields::Wrong;
use crate::windie::wire::user_settings::SettingsError;

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u16,
    detail: Value,
    header: Option<(HeaderName, String)>,
}

impl Reply {
    /// A status with a message.
    pub(crate) fn new(status: u16, detail: impl Into<String>) -> Self {
        Self { status, detail: Value::String(detail.into()), header: None }
    }

    /// A status with a structured detail.
    pub(super) fn detailed(status: u16, detail: Value) -> Self {
        Self { status, detail, header: None }
    }

    /// An internal error, whose cause is only logged.
    pub(super) fn internal() -> Self {
        Self::new(500, "Internal server error")
    }

    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// The same with a header.
    pub(super) fn with(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.header = Some((name, value.into()));
        self
    }
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(json!({ "detail": self.detail }))).into_response();
        if let Some((name, value)) = self.header
            && let Ok(value) = HeaderValue::from_str(&value)
        {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// The answer to an invalid body or query.
impl From<Wrong> for Reply {
    fn from(wrong: Wrong) -> Self {
        Self::detailed(422, wrong.details())
    }
}

impl From<Refused> for Reply {
    fn from(refused: Refused) -> Self {
        match &refused {
            Refused::Missing | Refused::Invalid => {
                Self::new(401, refused.message()).with(header::WWW_AUTHENTICATE, "Bearer")
            }
            Refused::Unavailable(error) => {
                tracing::error!(%error, "an install token could not be looked up");
                Self::new(503, refused.message())
            }
        }
    }
}

impl From<StorageError> for Reply {
    fn from(error: StorageError) -> Self {
        tracing::error!(%error, "storage failed while a request was answered");
        Self::internal()
    }
}

impl From<SettingsError> for Reply {
    fn from(error: SettingsError) -> Self {
        tracing::error!(%error, "a user's settings");
        Self::new(500, error.to_string())
    }
}

/// The answer for a sense that failed, by the name of its service: 503 if it is off, not installed or busy,
/// 422 if the input is at fault, 502 if the model is.
pub(super) fn unavailable(service: &'static str) -> impl Fn(SenseError) -> Reply + Copy {
    move |error| match error {
        SenseError::Off(_) | SenseError::MissingWeights(_) => {
            Reply::new(503, format!("{service} not available: {error}"))
        }
        SenseError::Busy => {
            let why = format!("{service} is busy: too many requests are waiting");
            Reply::new(503, why).with(header::RETRY_AFTER, "1")
        }
        SenseError::BadInput(reason) => Reply::new(422, reason),
        SenseError::Failed(reason) => {
            tracing::warn!("{service} failed: {reason}");
            Reply::new(502, format!("{service} failed: {reason}"))
        }
    }
}
