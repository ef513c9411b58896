//! Decodes tool calls.

use std::path::PathBuf;
use std::time::Duration;

use quintet_kernel::event::ApprovalDecision;
use quintet_kernel::{ApprovalId, Cursor, SessionId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::wire::{
    AnswerArguments, CancelArguments, Choice, ContinueArguments, RunArguments, SessionsArguments,
    StatusArguments, WAIT_LIMIT_SECONDS, WAIT_SECONDS,
};

/// The start of a transcript's URI.
const SESSIONS: &str = "quintet://sessions/";
/// The end of a transcript's URI.
const TRANSCRIPT: &str = "/transcript";

/// A decoded tool call.
#[derive(Debug, PartialEq)]
pub(super) enum Request {
    /// Start a session. The default folder is the client's, if that is known.
    Run {
        prompt: String,
        workspace: Option<PathBuf>,
        wait: Duration,
    },
    Continue {
        session: SessionId,
        prompt: String,
        wait: Duration,
    },
    /// Without a cursor, all text of the last turn is returned.
    Status {
        session: SessionId,
        cursor: Option<Cursor>,
        wait: Duration,
    },
    Answer {
        session: SessionId,
        question: ApprovalId,
        answer: ApprovalDecision,
        content: Option<Value>,
        reason: Option<String>,
        wait: Duration,
    },
    Cancel {
        session: SessionId,
    },
    Sessions,
}

/// The reason why a call is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InvalidCall {
    /// The tool does not exist.
    UnknownTool(String),
    /// The session does not exist.
    UnknownSession(String),
    /// The arguments are invalid; the error is shown to the model.
    Arguments(String),
}

/// Decodes a call.
pub(super) fn decode(tool: &str, arguments: Value) -> Result<Request, InvalidCall> {
    Ok(match tool {
        "run" => {
            let RunArguments { prompt, workspace, wait_seconds } = parse(arguments)?;
            let workspace = workspace.map(absolute).transpose()?;
            let wait = wait(wait_seconds, WAIT_SECONDS)?;
            Request::Run { prompt: non_empty(prompt)?, workspace, wait }
        }
        "continue" => {
            let ContinueArguments { session, prompt, wait_seconds } = parse(arguments)?;
            let wait = wait(wait_seconds, WAIT_SECONDS)?;
            Request::Continue { session: id(&session)?, prompt: non_empty(prompt)?, wait }
        }
        "status" => {
            let StatusArguments { session, cursor, wait_seconds } = parse(arguments)?;
            let parse_cursor = |text: String| {
                Cursor::parse(&text).ok_or_else(|| invalid(format!("invalid cursor: {text}")))
            };
            let cursor = cursor.map(parse_cursor).transpose()?;
            Request::Status { session: id(&session)?, cursor, wait: wait(wait_seconds, 0)? }
        }
        "answer" => {
            let AnswerArguments { session, question, option, content, reason, wait_seconds } =
                parse(arguments)?;
            let known = ApprovalId::parse(&question);
            let question = known.ok_or_else(|| invalid(format!("invalid question: {question}")))?;
            let answer = match option {
                Choice::Approve => ApprovalDecision::Allow,
                Choice::Deny => ApprovalDecision::Deny,
            };
            let wait = wait(wait_seconds, 0)?;
            Request::Answer { session: id(&session)?, question, answer, content, reason, wait }
        }
        "cancel" => {
            let CancelArguments { session } = parse(arguments)?;
            Request::Cancel { session: id(&session)? }
        }
        "sessions" => {
            let SessionsArguments {} = parse(arguments)?;
            Request::Sessions
        }
        unknown => return Err(InvalidCall::UnknownTool(unknown.to_owned())),
    })
}

/// Parses the URI of a transcript.
pub(super) fn transcript(uri: &str) -> Option<SessionId> {
    SessionId::parse(uri.strip_prefix(SESSIONS)?.strip_suffix(TRANSCRIPT)?)
}

/// The URI of a session's transcript.
pub(super) fn transcript_uri(session: &str) -> String {
    format!("{SESSIONS}{session}{TRANSCRIPT}")
}

fn invalid(why: String) -> InvalidCall {
    InvalidCall::Arguments(why)
}

fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, InvalidCall> {
    serde_json::from_value(arguments)
        .map_err(|error| invalid(format!("invalid arguments: {error}")))
}

fn id(session: &str) -> Result<SessionId, InvalidCall> {
    SessionId::parse(session).ok_or_else(|| InvalidCall::UnknownSession(session.to_owned()))
}

fn non_empty(prompt: String) -> Result<String, InvalidCall> {
    if prompt.trim().is_empty() { Err(invalid("the prompt is empty".into())) } else { Ok(prompt) }
}

fn absolute(workspace: String) -> Result<PathBuf, InvalidCall> {
    let path = PathBuf::from(&workspace);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(invalid(format!("workspace is not an absolute path: {workspace}")))
    }
}

fn wait(seconds: Option<f64>, default: u64) -> Result<Duration, InvalidCall> {
    let Some(seconds) = seconds else { return Ok(Duration::from_secs(default)) };
    let given = Duration::try_from_secs_f64(seconds);
    let given = given.map_err(|_| invalid(format!("wait_seconds cannot be {seconds}")))?;
    Ok(given.min(Duration::from_secs(WAIT_LIMIT_SECONDS)))
}
