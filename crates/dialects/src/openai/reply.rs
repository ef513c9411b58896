//! Error responses with the four fields of the official API.

use quintet_kernel::Refusal;
use quintet_kernel::event::FailureCode;
use quintet_kernel::model::{Failure, FailureKind};
use quintet_kernel::port::{Error, SenseError, StorageError};
use serde_json::{Value, json};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) code: Option<&'static str>,
    /// The invalid parameter.
    pub(super) param: Option<String>,
    pub(super) message: String,
    /// False if SDKs must not send the request again, because a run has started.
    pub(super) may_retry: bool,
    /// Seconds after which the request may succeed.
    pub(super) retry_after: Option<u32>,
}

impl Reply {
    fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, kind, code: None, param: None, message, may_retry: true, retry_after: None }
    }

    /// The error for an invalid request.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request_error", message)
    }

    /// The error for a failure in the daemon.
    pub(super) fn server(status: u16, message: impl Into<String>) -> Self {
        Self::new(status, "server_error", message)
    }

    /// The error for something that does not exist.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self { status: 404, ..Self::invalid(message) }
    }

    pub(super) fn unknown_model(name: &str) -> Self {
        let message = format!(
            "The model `{name}` does not exist: `GET /v1/models` lists the available models"
        );
        Self::not_found(message).code("model_not_found").param("model")
    }

    pub(super) fn missing(param: String) -> Self {
        let message = format!("Missing required parameter: '{param}'.");
        Self::invalid(message).code("missing_required_parameter").param(param)
    }

    pub(super) fn invalid_type(param: String, expected: &str, given: &Value) -> Self {
        let given = match given {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        let message = format!("Invalid type for '{param}': expected {expected}, but got {given}.");
        Self::invalid(message).code("invalid_type").param(param)
    }

    pub(super) fn invalid_value(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(message).code("invalid_value").param(param)
    }

    pub(super) fn unsupported(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(message).code("unsupported_value").param(param)
    }

    #[must_use]
    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    #[must_use]
    pub(super) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    #[must_use]
    pub(super) fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Marks the reply for a request whose run has started: a retry would start a second run.
    #[must_use]
    pub(super) fn after_start(self) -> Self {
        Self { may_retry: false, ..self }
    }

    /// Marks the reply for an answer that failed after its first output: the request itself was valid.
    #[must_use]
    pub(super) fn after_output(self) -> Self {
        let (status, kind) =
            if self.status < 500 { (502, "server_error") } else { (self.status, self.kind) };
        Self { status, kind, ..self.after_start() }
    }

    pub(super) fn body(&self) -> Value {
        json!({ "error": self.error() })
    }

    pub(super) fn error(&self) -> Value {
        json!({
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.code,
        })
    }

    /// The reply for a failed turn.
    pub(super) fn failed(code: FailureCode, message: &str) -> Self {
        let reply = match code {
            FailureCode::Model(kind) => Failure { kind, message: message.into() }.into(),
            FailureCode::Denied
            | FailureCode::StepLimit
            | FailureCode::TokenLimit
            | FailureCode::TimeLimit
            | FailureCode::Loop
            | FailureCode::Unverified
            | FailureCode::Interrupted => Self::server(500, message).code(code.name()),
        };
        reply.after_start()
    }
}

impl From<Failure> for Reply {
    fn from(Failure { kind, message }: Failure) -> Self {
        match kind {
            FailureKind::RateLimited => {
                Self::new(429, "rate_limit_error", message).code("rate_limit_exceeded")
            }
            FailureKind::UnknownModel => {
                Self::not_found(message).code("model_not_found").param("model")
            }
            FailureKind::ContextOverflow => {
                Self::invalid(message).code("context_length_exceeded").param("messages")
            }
            FailureKind::Rejected | FailureKind::UnsupportedInput => {
                Self::invalid(message).code(kind.name())
            }
            FailureKind::Refused => Self::invalid(message).code("content_policy_violation"),
            FailureKind::Unavailable => Self::server(503, message).code(kind.name()),
            // The provider's key belongs to the daemon, not to the client.
            FailureKind::Unauthorized => {
                Self::server(502, message).code("provider_unauthorized").after_start()
            }
            FailureKind::Cut | FailureKind::Stalled | FailureKind::Malformed => {
                Self::server(502, message).code(kind.name()).after_start()
            }
        }
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NotFound(_) => Self::not_found(message),
            Error::Refused(Refusal::UnknownModel(model)) => Self::unknown_model(&model.to_string()),
            Error::Refused(Refusal::BadTools(_)) => Self::invalid(message).param("tools"),
            Error::Refused(Refusal::UnsupportedInput { .. }) => {
                Self::unsupported("messages", message)
            }
            Error::Refused(Refusal::Busy(_)) => Self { status: 409, ..Self::invalid(message) },
            Error::Refused(_) | Error::Ahead(..) => Self::invalid(message),
            Error::Closing | Error::ReadOnly => Self::server(503, message),
            Error::Storage(_) => Self::server(500, message),
        }
    }
}

impl From<StorageError> for Reply {
    fn from(error: StorageError) -> Self {
        Error::Storage(error).into()
    }
}

impl From<SenseError> for Reply {
    fn from(error: SenseError) -> Self {
        let message = error.to_string();
        match error {
            SenseError::Off(_) => Self::server(503, message).code("sense_off").after_start(),
            SenseError::MissingWeights(_) => {
                Self::server(503, message).code("weights_missing").after_start()
            }
            SenseError::Busy => {
                Self { retry_after: Some(1), ..Self::server(503, message).code("busy") }
            }
            SenseError::BadInput(_) => Self::invalid(message),
            SenseError::Failed(_) => Self::server(502, message),
        }
    }
}
