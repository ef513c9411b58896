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

/// The beginning of the address of a transcript.
const SESSIONS: &str = "quintet://sessions/";
/// The end of it.
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

/// Why a call cannot be carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InvalidMessage {
    /// The tool does not exist.
    UnknownTool(String),
    /// The session does not exist.
    UnknownSession(String),
    /// The arguments are wrong; the error is shown to the model.
    Arguments(String),
}

/// Reads a call.
pub(super) fn decode(tool: &str, arguments: Value) -> Result<Request, InvalidMessage> {
    Ok(match tool {
        "run" => {
            let RunArguments { prompt, workspace, wait_seconds } = parse(arguments)?;
            let workspace = workspace.map(absolute).transpose()?;
            let wait = wait(wait_seconds, WAIT_SECONDS)?;
            Request::Run { prompt: said(prompt)?, workspace, wait }
        }
        "continue" => {
            let ContinueArguments { session, prompt, wait_seconds } = parse(arguments)?;
            let wait = wait(wait_seconds, WAIT_SECONDS)?;
            Request::Continue { session: id(&session)?, prompt: said(prompt)?, wait }
        }
        "status" => {
            let StatusArguments { session, cursor, wait_seconds } = parse(arguments)?;
            let known = |text: String| {
                Cursor::parse(&text).ok_or_else(|| wrong(format!("no cursor: {text}")))
            };
            let cursor = cursor.map(known).transpose()?;
            Request::Status { session: id(&session)?, cursor, wait: wait(wait_seconds, 0)? }
        }
        "answer" => {
            let AnswerArguments { session, question, option, content, reason, wait_seconds } =
                parse(arguments)?;
            let known = ApprovalId::parse(&question);
            let question = known.ok_or_else(|| wrong(format!("no question: {question}")))?;
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
        unknown => return Err(InvalidMessage::UnknownTool(unknown.to_owned())),
    })
}

/// The session whose transcript an address names.
pub(super) fn transcript(address: &str) -> Option<SessionId> {
    SessionId::parse(address.strip_prefix(SESSIONS)?.strip_suffix(TRANSCRIPT)?)
}

/// The address of a session's transcript.
pub(super) fn transcript_address(session: &str) -> String {
    format!("{SESSIONS}{session}{TRANSCRIPT}")
}

fn wrong(why: String) -> InvalidMessage {
    InvalidMessage::Arguments(why)
}

fn parse<T: DeserializeOwned>(arguments: Value) -> Result<T, InvalidMessage> {
    serde_json::from_value(arguments).map_err(|error| wrong(format!("invalid arguments: {error}")))
}

fn id(session: &str) -> Result<SessionId, InvalidMessage> {
    SessionId::parse(session).ok_or_else(|| InvalidMessage::UnknownSession(session.to_owned()))
}

fn said(prompt: String) -> Result<String, InvalidMessage> {
    if prompt.trim().is_empty() { Err(wrong("the prompt is empty".into())) } else { Ok(prompt) }
}

fn absolute(workspace: String) -> Result<PathBuf, InvalidMessage> {
    let path = PathBuf::from(&workspace);
    let absolute = path.is_absolute();
    if absolute {
        Ok(path)
    } else {
        Err(wrong(format!("workspace is not an absolute path: {workspace}")))
    }
}

fn wait(seconds: Option<f64>, usual: u64) -> Result<Duration, InvalidMessage> {
    let Some(seconds) = seconds else { return Ok(Duration::from_secs(usual)) };
    let given = Duration::try_from_secs_f64(seconds);
    let given = given.map_err(|_| wrong(format!("wait_seconds cannot be {seconds}")))?;
    Ok(given.min(Duration::from_secs(WAIT_LIMIT_SECONDS)))
}
