//! Decodes requests into commands of the core.

use quintet_kernel::command::{Command, NewMessage, TurnStart};
use quintet_kernel::event::{Setup, TurnOptions};
use quintet_kernel::memory::{LineRange, MemoryEntry, MemoryFile, MemoryQuery};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::tool::{Ending, Outcome};
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{CallId, ClientRef, Cursor, SessionId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::reply::Reply;
use super::strict::Object;
use super::{tools, wire};
use crate::transport::query::parameter;
use crate::transport::routes::{Refusals, Row};

/// The largest body.
pub(super) const BODY_BYTES_LIMIT: usize = 8 * 1024 * 1024;
/// The longest session name or idempotency key, in bytes.
const NAME_LENGTH_LIMIT: usize = 1024;
/// Bytes of a result that are passed on to the model.
const RESULT_BYTES_LIMIT: usize = 64 * 1024;
/// The most passages of one search.
const PASSAGES_LIMIT: usize = 100;

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    OpenApi,
    CreateSession,
    Chat,
    Stream,
    ToolResult,
    MemoryWrite,
    MemorySearch,
    MemoryGet,
}

/// The decoded form of a request.
#[derive(Debug)]
pub(super) enum Step {
    Health,
    OpenApi,
    Open(Open),
    Chat(Chat),
    Stream(SessionId),
    Submit(SessionId, Command),
    Remember(SessionId, MemoryEntry),
    Search(MemoryQuery),
    Get(String, LineRange),
}

/// A desktop's request for a session.
#[derive(Debug)]
pub(super) struct Open {
    /// The desktop's own name for the session.
    pub(super) name: String,
    /// The session that the desktop prefers.
    pub(super) preferred: Option<String>,
    /// The desktop's own tools.
    pub(super) tools: Vec<ClientTool>,
}

/// A chat message.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) session: SessionId,
    pub(super) parts: Vec<Part>,
    pub(super) stream: bool,
}

impl Chat {
    /// The command that adds the message, with its idempotency key and newly registered tools.
    pub(super) fn command(&self, key: Option<String>, toolset: Option<Toolset>) -> Command {
        let options = TurnOptions { key, ..TurnOptions::default() };
        let setup = Setup { toolset, ..Setup::default() };
        let message = NewMessage::new(Role::User, self.parts.clone(), TurnStart::Now, options);
        Command::AddMessage(Box::new(NewMessage { setup, ..message }))
    }
}

/// All routes.
pub(super) const ROUTES: &[Row<Route, Reply>] = &[
    ("GET", "/health", |_| Ok(Route::Health)),
    ("GET", "/openapi.json", |_| Ok(Route::OpenApi)),
    ("POST", "/v1/sessions", |_| Ok(Route::CreateSession)),
    ("POST", "/v1/chat", |_| Ok(Route::Chat)),
    ("GET", "/v1/stream", |_| Ok(Route::Stream)),
    ("POST", "/v1/tools/result", |_| Ok(Route::ToolResult)),
    ("POST", "/v1/memory/write", |_| Ok(Route::MemoryWrite)),
    ("GET", "/v1/memory/search", |_| Ok(Route::MemorySearch)),
    ("GET", "/v1/memory/get", |_| Ok(Route::MemoryGet)),
];

/// The OpenAPI document.
pub(super) fn openapi() -> Value {
    serde_json::from_str(include_str!("openapi.json")).expect("openapi.json is checked by a test")
}

/// The responses to requests that match no route.
pub(super) const REFUSALS: &Refusals<Reply> = &Refusals {
    unknown_path: |path| Reply::new(404, "NOT_FOUND", format!("unknown endpoint: {path}")),
    wrong_method: |path, allowed| {
        Reply::new(405, "METHOD_NOT_ALLOWED", format!("{path} allows {allowed}"))
    },
};

/// Decodes a request. Fails with the reply if it is invalid.
pub(super) fn decode(route: Route, query: &str, body: &[u8]) -> Result<Step, Reply> {
    match route {
        Route::Health => Ok(Step::Health),
        Route::OpenApi => Ok(Step::OpenApi),
        Route::CreateSession => open(json(body)?),
        Route::Chat => chat(json(body)?),
        Route::Stream => {
            let id = parameter(query, "general_session_id").unwrap_or_default();
            Ok(Step::Stream(session(&id)?))
        }
        Route::ToolResult => result(json(body)?),
        Route::MemoryWrite => write_memory(json(body)?),
        Route::MemorySearch => search(query),
        Route::MemoryGet => get(query),
    }
}

/// The position from which a stream continues; `None` if the client names none.
pub(super) fn position(header: Option<&str>, query: &str) -> Result<Option<Cursor>, Reply> {
    let requested = header.map(Into::into).or_else(|| parameter(query, "last_event_id"));
    let Some(requested) = requested.filter(|requested: &String| !requested.trim().is_empty())
    else {
        return Ok(None);
    };
    Cursor::parse(requested.trim()).map(Some).ok_or_else(|| Reply::gone(&requested))
}

/// The idempotency key of a message.
pub(super) fn key(header: Option<&str>) -> Result<Option<String>, Reply> {
    match header.map(str::trim).filter(|key| !key.is_empty()) {
        Some(key) if key.len() > NAME_LENGTH_LIMIT => {
            Err(Reply::invalid("the Idempotency-Key is too long"))
        }
        key => Ok(key.map(Into::into)),
    }
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reply> {
    let read = serde_json::from_slice::<Object<T>>(body);
    let read = read.map(|Object(body)| body);
    read.map_err(|error| Reply::invalid(format!("invalid JSON body: {error}")))
}

fn session(id: &str) -> Result<SessionId, Reply> {
    match id {
        "" => Err(Reply::invalid("general_session_id is required")),
        id => SessionId::parse(id).ok_or_else(|| Reply::no_session(id)),
    }
}

fn open(body: wire::CreateSession) -> Result<Step, Reply> {
    let name = body.jarvis_session_id;
    if name.is_empty() || name.len() > NAME_LENGTH_LIMIT {
        return Err(Reply::invalid("jarvis_session_id must have 1 to 1024 bytes"));
    }
    let preferred = body.preferred_session_id.filter(|id| !id.is_empty());
    let tools = body.tools.unwrap_or_default().into_iter();
    let tools = tools.map(|Object(tool)| tools::client_tool(tool)).collect();
    Ok(Step::Open(Open { name, preferred, tools }))
}

fn chat(body: wire::Chat) -> Result<Step, Reply> {
    let session = session(&body.general_session_id)?;
    let Object(message) = body.message;
    let text = |Object(part): Object<wire::Part>| {
        part.text.filter(|text| !text.is_empty()).map(Part::Text)
    };
    let parts: Vec<Part> = message.parts.into_iter().filter_map(text).collect();
    if parts.is_empty() {
        Err(Reply::invalid("message.parts has no text"))
    } else {
        Ok(Step::Chat(Chat { session, parts, stream: body.stream }))
    }
}

fn result(body: wire::PostResult) -> Result<Step, Reply> {
    let session = session(&body.general_session_id)?;
    let Object(result) = body.tool_result;
    let id = &result.id;
    let unknown = || Reply::new(404, "TOOL_CALL_NOT_FOUND", format!("tool call not found: {id}"));
    let call = CallId::parse(id).ok_or_else(unknown)?;
    let outcome = outcome(result)?;
    // A result comes on a connection of its own, so any desktop that knows the call's id may post it.
    let by = ClientRef::named(tools::FRONT_END);
    Ok(Step::Submit(session, Command::ReturnResult { call, by, outcome }))
}

fn outcome(result: wire::ToolResult) -> Result<Outcome, Reply> {
    let text = match result.result {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let text = shorten(text);
    let (code, error) = error(result.error)?;
    Ok(match (result.ok, is_denial(&code), text.is_empty()) {
        (true, ..) => Outcome::success(text),
        (false, true, _) => Outcome::ended(Ending::Denied, error),
        (false, false, true) => Outcome::failure(error),
        (false, false, false) => Outcome::failed_with(format!("{error}\n{text}"), error),
    })
}

/// The code and message of an error.
fn error(error: Value) -> Result<(String, String), Reply> {
    match (&error, error["code"].as_str(), error["message"].as_str()) {
        (Value::Null, ..) => Ok(no_reason()),
        (Value::String(text), ..) if text.trim().is_empty() => Ok(no_reason()),
        (Value::String(text), ..) => Ok((text.clone(), shorten(text.clone()))),
        (Value::Object(_), Some(code), Some(message)) => {
            Ok((code.into(), shorten(format!("{code}: {message}"))))
        }
        _ => {
            let why =
                "tool_result.error must be null, a string, or an object with code and message";
            Err(Reply::invalid(why))
        }
    }
}

/// The code and message of an error without a reason.
fn no_reason() -> (String, String) {
    (String::new(), "the tool failed".into())
}

/// True if a code means that the desktop or its user refused.
fn is_denial(code: &str) -> bool {
    let names = ["denied", "deny", "forbidden", "user_denied", "permission_denied", "tool_denied"];
    names.iter().any(|name| code.trim().eq_ignore_ascii_case(name))
}

fn shorten(mut text: String) -> String {
    if text.len() > RESULT_BYTES_LIMIT {
        text.truncate(text.floor_char_boundary(RESULT_BYTES_LIMIT));
        text.push_str("\n[the rest was cut off]");
    }
    text
}

fn write_memory(body: wire::MemoryWrite) -> Result<Step, Reply> {
    let session = session(&body.general_session_id)?;
    let target = match body.target {
        wire::Target::LongTerm => MemoryFile::LongTerm,
        wire::Target::Daily => MemoryFile::Daily,
    };
    Ok(Step::Remember(session, MemoryEntry::new(target, body.content)))
}

fn search(query: &str) -> Result<Step, Reply> {
    let text = parameter(query, "q").filter(|text| !text.trim().is_empty());
    let text = text.ok_or_else(|| Reply::invalid("q is required"))?;
    let kind = match parameter(query, "kind").filter(|kind| !kind.is_empty()) {
        None => None,
        Some(kind) => Some(MemoryFile::named(&kind).ok_or_else(|| {
            Reply::invalid(format!("kind must be long_term or daily, not {kind:?}"))
        })?),
    };
    let limit = number(query, "limit")?;
    if limit.is_some_and(|limit| !(1..=PASSAGES_LIMIT as u64).contains(&limit)) {
        return Err(Reply::invalid(format!("limit must be from 1 to {PASSAGES_LIMIT}")));
    }
    let limit = limit.and_then(|limit| usize::try_from(limit).ok());
    Ok(Step::Search(MemoryQuery { text, kind, limit }))
}

fn get(query: &str) -> Result<Step, Reply> {
    let path = parameter(query, "path").filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Reply::invalid("path is required"))?;
    let first = number(query, "line_start")?.unwrap_or(1);
    let last = number(query, "line_end")?;
    if first == 0 || last.is_some_and(|last| last < first) {
        return Err(Reply::invalid(
            "line_start must be at least 1, and line_end at least line_start",
        ));
    }
    Ok(Step::Get(path, LineRange { first, last }))
}

fn number(query: &str, name: &str) -> Result<Option<u64>, Reply> {
    let given = parameter(query, name).filter(|text| !text.is_empty());
    let read = |text: String| {
        text.parse().map_err(|_| Reply::invalid(format!("{name} must be a number, not {text:?}")))
    };
    given.map(read).transpose()
}
