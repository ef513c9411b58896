//! Classifies the errors of providers.

use std::borrow::Cow;
use std::time::Duration;

use quintet_kernel::model::{Failure, FailureKind};
use serde_json::Value;

use crate::retry::{AttemptError, Retry};

/// Bytes of a provider's message that are passed on.
const MESSAGE_BYTES_LIMIT: usize = 2 << 10;

/// Phrases for a prompt that is too long, of providers that do not use the code for it.
const TOO_LONG: [&str; 9] = [
    "maximum context length",
    "context window",
    "context size",
    "context length",
    "context limit",
    "prompt is too long",
    "maximum prompt length",
    "input token count",
    "too many tokens",
];

/// Phrases for an unknown model, of providers that do not use the code for it.
const NO_MODEL: [&str; 3] = ["invalid model", "model not found", "unknown model"];

/// An answer that is an error by its HTTP status.
pub(crate) fn from_status(status: u16, body: &[u8], retry: Retry) -> AttemptError {
    let parsed = ErrorBody::read(body);
    let kind = parsed.kind(status);
    let message = format!("the provider answered {status}{}", parsed.message_suffix());
    let retry = match (parsed.delay, retry) {
        _ if parsed.is_permanent() => Retry::Never,
        (Some(delay), Retry::Later) => retry_if_transient(kind, Retry::After(delay)),
        (_, retry) => retry_if_transient(kind, retry),
    };
    AttemptError { failure: Failure { kind, message }, retry }
}

/// An error object in the middle of a stream, which has no HTTP status of its own.
pub(crate) fn from_stream(error: &str) -> AttemptError {
    let parsed = ErrorBody::read(error.as_bytes());
    let kind = parsed.kind(parsed.status());
    let message = format!("the provider broke off{}", parsed.message_suffix());
    AttemptError {
        failure: Failure { kind, message },
        retry: retry_if_transient(kind, Retry::Later),
    }
}

/// A failure that a retry does not fix.
pub(crate) fn permanent(kind: FailureKind, message: impl Into<String>) -> AttemptError {
    AttemptError { failure: Failure { kind, message: message.into() }, retry: Retry::Never }
}

/// A failure that a retry may fix.
pub(crate) fn transient(kind: FailureKind, message: impl Into<String>) -> AttemptError {
    AttemptError { failure: Failure { kind, message: message.into() }, retry: Retry::Later }
}

fn retry_if_transient(kind: FailureKind, retry: Retry) -> Retry {
    match kind {
        FailureKind::RateLimited | FailureKind::Unavailable => retry,
        FailureKind::Unauthorized
        | FailureKind::UnknownModel
        | FailureKind::ContextOverflow
        | FailureKind::Rejected
        | FailureKind::Cut
        | FailureKind::Stalled
        | FailureKind::Malformed
        | FailureKind::UnsupportedInput
        | FailureKind::Refused => Retry::Never,
    }
}

/// The error object of a provider.
#[derive(Debug, Default)]
struct ErrorBody {
    message: String,
    /// `code` and `type` together; providers do not agree which is which.
    keywords: String,
    /// A numeric `code`, which some use for what would have been the HTTP status.
    number: Option<u16>,
    /// The delay that the body requests.
    delay: Option<Duration>,
}

impl ErrorBody {
    /// Parses `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, lists of those
    /// and plain text.
    fn read(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Self { message: shorten(&String::from_utf8_lossy(body)), ..Self::default() };
        };
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").unwrap_or(value);
        let message = ["message", "detail"].iter().find_map(|key| error.get(key));
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_lowercase();
        Self {
            message: shorten(&plain(message.unwrap_or(error))),
            keywords: format!("{} {} {}", word("code"), word("type"), reasons(error)),
            number: error["code"].as_u64().and_then(|code| u16::try_from(code).ok()),
            delay: delay(error),
        }
    }

    fn kind(&self, status: u16) -> FailureKind {
        match status {
            401 | 403 => FailureKind::Unauthorized,
            400 if self.keywords.contains("api_key_invalid") => FailureKind::Unauthorized,
            _ if self.keywords.contains("model_not_found") => FailureKind::UnknownModel,
            404 => FailureKind::UnknownModel,
            400 | 413 | 422 if self.is_too_long() => FailureKind::ContextOverflow,
            400 | 422 if self.contains_any(&NO_MODEL) => FailureKind::UnknownModel,
            400 if self.keywords.contains("content_policy") => FailureKind::Refused,
            400 if self.keywords.contains("content_filter") => FailureKind::Refused,
            429 => FailureKind::RateLimited,
            500.. => FailureKind::Unavailable,
            _ => FailureKind::Rejected,
        }
    }

    /// The HTTP status that fits an error without one.
    fn status(&self) -> u16 {
        let has_any = |words: &[&str]| words.iter().any(|word| self.keywords.contains(word));
        match self.number {
            Some(number) if (400..600).contains(&number) => number,
            _ if has_any(&["rate_limit", "too_many"]) => 429,
            _ if has_any(&["authentication", "permission", "invalid_api_key"]) => 401,
            _ if has_any(&["invalid", "context"]) || self.is_too_long() => 400,
            _ => 503,
        }
    }

    fn is_too_long(&self) -> bool {
        self.keywords.contains("context_length_exceeded")
            || self.keywords.contains("exceed_context_size")
            || self.contains_any(&TOO_LONG)
    }

    fn contains_any(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|phrase| message.contains(phrase))
    }

    /// Exhausted credit looks like a rate limit, but waiting does not help.
    fn is_permanent(&self) -> bool {
        self.keywords.contains("insufficient_quota")
    }

    fn message_suffix(&self) -> Cow<'static, str> {
        if self.message.is_empty() { "".into() } else { format!(": {}", self.message).into() }
    }
}

/// The details of Google's errors, which are in a list.
fn details(error: &Value) -> impl Iterator<Item = &Value> {
    error["details"].as_array().into_iter().flatten()
}

fn reasons(error: &Value) -> String {
    let reasons = details(error).filter_map(|detail| detail["reason"].as_str());
    let status = error["status"].as_str();
    reasons.chain(status).collect::<Vec<_>>().join(" ").to_lowercase()
}

/// `"retryDelay": "17s"`.
fn delay(error: &Value) -> Option<Duration> {
    let text = details(error).find_map(|detail| detail["retryDelay"].as_str())?;
    let seconds = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shorten(text: &str) -> String {
    let text = text.trim();
    let end = text.floor_char_boundary(MESSAGE_BYTES_LIMIT);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_message_decide_the_kind() {
        use FailureKind::*;
        let check = |status, body: &str, kind, retry| {
            let error = from_status(status, body.as_bytes(), Retry::Later);
            assert_eq!((error.failure.kind, error.retry), (kind, retry), "{status} {body}");
        };
        check(401, "", Unauthorized, Retry::Never);
        check(403, r#"{"error":"no"}"#, Unauthorized, Retry::Never);
        check(404, "<html>", UnknownModel, Retry::Never);
        check(400, r#"{"error":{"code":"model_not_found"}}"#, UnknownModel, Retry::Never);
        check(
            400,
            r#"{"error":{"code":"context_length_exceeded"}}"#,
            ContextOverflow,
            Retry::Never,
        );
        check(413, r#"{"message":"Maximum context length is 5"}"#, ContextOverflow, Retry::Never);
        check(413, "too large", Rejected, Retry::Never);
        check(301, "", Rejected, Retry::Never);
        check(429, "slow down", RateLimited, Retry::Later);
        check(429, r#"{"error":{"code":"insufficient_quota"}}"#, RateLimited, Retry::Never);
        check(503, r#"[{"error":{"message":"busy","code":503}}]"#, Unavailable, Retry::Later);
    }

    #[test]
    fn every_family_has_its_own_errors() {
        use FailureKind::*;
        let check = |status, body: &str, kind, retry| {
            let error = from_status(status, body.as_bytes(), Retry::Later);
            assert_eq!((error.failure.kind, error.retry), (kind, retry), "{status} {body}");
        };
        let anthropic = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
        };
        check(529, &anthropic("overloaded_error", "Overloaded"), Unavailable, Retry::Later);
        check(
            401,
            &anthropic("authentication_error", "invalid x-api-key"),
            Unauthorized,
            Retry::Never,
        );
        check(404, &anthropic("not_found_error", "model: claude-9"), UnknownModel, Retry::Never);
        let long = "prompt is too long: 210000 tokens > 200000 maximum";
        check(400, &anthropic("invalid_request_error", long), ContextOverflow, Retry::Never);
        check(
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",
                "details":[{"reason":"API_KEY_INVALID"}]}}"#,
            Unauthorized,
            Retry::Never,
        );
        check(
            400,
            r#"{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum
                number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            ContextOverflow,
            Retry::Never,
        );
        check(
            429,
            r#"{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED",
                "details":[{"retryDelay":"17.5s"}]}}"#,
            RateLimited,
            Retry::After(Duration::from_millis(17_500)),
        );
        check(400, r#"{"error":{"code":"content_policy_violation"}}"#, Refused, Retry::Never);
        check(
            400,
            r#"{"message":"Invalid model: x","type":"invalid_model"}"#,
            UnknownModel,
            Retry::Never,
        );
    }

    #[test]
    fn errors_in_a_stream_are_classified_by_their_message() {
        use FailureKind::*;
        let check = |body: &str, kind, message: &str| {
            let failure = from_stream(body).failure;
            assert_eq!((failure.kind, failure.message.as_str()), (kind, message));
        };
        check(r#""gone""#, Unavailable, "the provider broke off: gone");
        check(r#"{"message":"m","code":429}"#, RateLimited, "the provider broke off: m");
        check(
            r#"{"message":"m","type":"invalid_request_error"}"#,
            Rejected,
            "the provider broke off: m",
        );
        check(
            r#"{"message":"m","code":"invalid_api_key"}"#,
            Unauthorized,
            "the provider broke off: m",
        );
    }

    #[test]
    fn long_messages_are_shortened_between_characters() {
        let error = from_status(400, "ü".repeat(4000).as_bytes(), Retry::Later);
        assert!(error.failure.message.len() < MESSAGE_BYTES_LIMIT + 64);
    }
}
