//! What a provider's error means for the caller.

use std::borrow::Cow;
use std::time::Duration;

use quintet_kernel::model::{Failure, FailureKind};
use serde_json::Value;

use crate::retry::{Retry, Trouble};

/// The longest message of a provider that is passed on.
const LONGEST_MESSAGE: usize = 2 << 10;

/// How models say that a prompt is too long, where they do not use the code for it.
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

/// How they say that there is no such model, where they do not use the code for it.
const NO_MODEL: [&str; 3] = ["invalid model", "model not found", "unknown model"];

/// An answer that is an error by its HTTP status.
pub(crate) fn from_status(status: u16, body: &[u8], retry: Retry) -> Trouble {
    let report = Report::read(body);
    let kind = report.kind(status);
    let message = format!("the provider answered {status}{}", report.tail());
    let retry = match (report.delay, retry) {
        _ if report.is_final() => Retry::Never,
        (Some(delay), Retry::Later) => only_passing(kind, Retry::After(delay)),
        (_, retry) => only_passing(kind, retry),
    };
    Trouble { failure: Failure { kind, message }, retry }
}

/// An error object in the middle of a stream, which has no HTTP status of its own.
pub(crate) fn from_stream(error: &str) -> Trouble {
    let report = Report::read(error.as_bytes());
    let kind = report.kind(report.status());
    let message = format!("the provider broke off{}", report.tail());
    Trouble { failure: Failure { kind, message }, retry: only_passing(kind, Retry::Later) }
}

/// A failure that another try does not mend.
pub(crate) fn lasting(kind: FailureKind, message: impl Into<String>) -> Trouble {
    Trouble { failure: Failure { kind, message: message.into() }, retry: Retry::Never }
}

/// A failure that another try may mend.
pub(crate) fn passing(kind: FailureKind, message: impl Into<String>) -> Trouble {
    Trouble { failure: Failure { kind, message: message.into() }, retry: Retry::Later }
}

fn only_passing(kind: FailureKind, retry: Retry) -> Retry {
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

/// A provider's own words.
#[derive(Debug, Default)]
struct Report {
    message: String,
    /// `code` and `type` together; providers do not agree which is which.
    words: String,
    /// A numeric `code`, which some use for what would have been the HTTP status.
    number: Option<u16>,
    /// How long to wait, where the body says so.
    delay: Option<Duration>,
}

impl Report {
    /// Understands `{"error": {…}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}`, lists of
    /// those and plain text.
    fn read(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Self { message: shorten(&String::from_utf8_lossy(body)), ..Self::default() };
        };
        let value = value.get(0).unwrap_or(&value);
        let error = value.get("error").unwrap_or(value);
        let said = ["message", "detail"].iter().find_map(|key| error.get(key));
        let word = |key: &str| error[key].as_str().unwrap_or_default().to_lowercase();
        Self {
            message: shorten(&plain(said.unwrap_or(error))),
            words: format!("{} {} {}", word("code"), word("type"), reasons(error)),
            number: error["code"].as_u64().and_then(|code| u16::try_from(code).ok()),
            delay: delay(error),
        }
    }

    fn kind(&self, status: u16) -> FailureKind {
        match status {
            401 | 403 => FailureKind::Unauthorized,
            400 if self.words.contains("api_key_invalid") => FailureKind::Unauthorized,
            _ if self.words.contains("model_not_found") => FailureKind::UnknownModel,
            404 => FailureKind::UnknownModel,
            400 | 413 | 422 if self.is_too_long() => FailureKind::ContextOverflow,
            400 | 422 if self.says(&NO_MODEL) => FailureKind::UnknownModel,
            400 if self.words.contains("content_policy") => FailureKind::Refused,
            400 if self.words.contains("content_filter") => FailureKind::Refused,
            429 => FailureKind::RateLimited,
            500.. => FailureKind::Unavailable,
            _ => FailureKind::Rejected,
        }
    }

    /// The HTTP status that this would have had.
    fn status(&self) -> u16 {
        let says = |words: &[&str]| words.iter().any(|word| self.words.contains(word));
        match self.number {
            Some(number) if (400..600).contains(&number) => number,
            _ if says(&["rate_limit", "too_many"]) => 429,
            _ if says(&["authentication", "permission", "invalid_api_key"]) => 401,
            _ if says(&["invalid", "context"]) || self.is_too_long() => 400,
            _ => 503,
        }
    }

    fn is_too_long(&self) -> bool {
        self.words.contains("context_length_exceeded")
            || self.words.contains("exceed_context_size")
            || self.says(&TOO_LONG)
    }

    fn says(&self, phrases: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        phrases.iter().any(|words| message.contains(words))
    }

    /// Used-up credit looks like a rate limit, but waiting does not help.
    fn is_final(&self) -> bool {
        self.words.contains("insufficient_quota")
    }

    fn tail(&self) -> Cow<'static, str> {
        if self.message.is_empty() { "".into() } else { format!(": {}", self.message).into() }
    }
}

/// Google's errors have their particulars in a list.
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
    let end = text.floor_char_boundary(LONGEST_MESSAGE);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_words_decide_the_kind() {
        use FailureKind::*;
        let check = |status, body: &str, kind, retry| {
            let trouble = from_status(status, body.as_bytes(), Retry::Later);
            assert_eq!((trouble.failure.kind, trouble.retry), (kind, retry), "{status} {body}");
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
            let trouble = from_status(status, body.as_bytes(), Retry::Later);
            assert_eq!((trouble.failure.kind, trouble.retry), (kind, retry), "{status} {body}");
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
    fn errors_in_a_stream_are_read_by_their_words() {
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
    fn long_messages_are_cut_between_characters() {
        let trouble = from_status(400, "ü".repeat(4000).as_bytes(), Retry::Later);
        assert!(trouble.failure.message.len() < LONGEST_MESSAGE + 64);
    }
}
