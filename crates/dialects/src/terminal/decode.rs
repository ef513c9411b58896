//! Decodes requests of the terminal protocol.

use std::path::PathBuf;

use quintet_kernel::command::Approve;
use quintet_kernel::event::{
    ApprovalDecision, ApprovalMode, DecidedBy, RememberScope, ToolUse, TurnOptions,
};
use quintet_kernel::model::{ModelRef, Sampling};
use quintet_kernel::port;
use quintet_kernel::{Refusal, SessionId, TurnId};
use serde_json::json;

use super::context::Context;
use super::screen::ClientKind;
use super::wire;
use crate::jsonrpc::{Call, Error, Fields, INTERNAL_ERROR, INVALID_PARAMS};

/// The default number of sessions in a list.
const LIST_DEFAULT: u64 = 10;
/// The most sessions in a list.
const LIST_LIMIT: u64 = 1000;

/// The state that decoding needs from earlier requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The client, after `initialize`.
    pub(super) client: Option<Client>,
    /// The context of the client's terminal.
    pub(super) context: Context,
}

/// The name and capabilities of a client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: String,
    pub(super) capabilities: Vec<String>,
}

/// The name and capabilities of the original client, which ignores unknown messages.
const ORIGINAL: &str = "openagent-terminal";
const ORIGINAL_CAPABILITIES: [&str; 3] = ["streaming", "blocks", "syntax_highlighting"];

impl Client {
    /// True if the client accepts several tokens in one message.
    pub(super) fn accepts_batches(&self) -> bool {
        let is_declared = self.capabilities.iter().any(|known| known == "token_batching");
        is_declared || self.name != ORIGINAL
    }

    /// How the client handles messages.
    pub(super) fn client_kind(&self) -> ClientKind {
        let can = self.capabilities.iter().map(String::as_str);
        if self.name == ORIGINAL && can.eq(ORIGINAL_CAPABILITIES) {
            ClientKind::Original
        } else {
            ClientKind::Any
        }
    }

    /// True if the client shows suggested commands.
    pub(super) fn wants_suggestions(&self) -> bool {
        let wants = |known: &String| {
            matches!(known.as_str(), "suggestions" | "inline_suggestions" | "suggestion.inline")
        };
        self.capabilities.iter().any(wants)
    }
}

/// A decoded request.
#[derive(Debug)]
pub(super) enum Request {
    Initialize,
    Query {
        message: String,
        options: TurnOptions,
        stream: bool,
    },
    Cancel(TurnId),
    Resume(TurnId),
    Approve(Approve),
    /// The context was updated while decoding.
    Update,
    Save {
        path: PathBuf,
        history: bool,
        blocks: bool,
    },
    LoadFile(PathBuf),
    LoadSession {
        session: SessionId,
        received: u64,
    },
    List(usize),
    Export {
        session: Option<SessionId>,
        format: Format,
    },
    Delete(SessionId),
    /// List the servers' prompts; the context was updated while decoding.
    Prompts,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Json,
}

impl Format {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Json => "json",
        }
    }
}

/// Decodes a request. Before `initialize`, all other requests fail.
pub(super) fn decode(link: &mut Link, call: &Call) -> Result<Request, Error> {
    let method = call.method.as_str();
    if !METHODS.contains(&method) {
        return Err(Error::no_method(method));
    }
    if link.client.is_none() && method != "initialize" {
        return Err(Error::invalid("initialize must be called first"));
    }
    let fields = Fields::of(&call.params)?;
    match method {
        "initialize" => initialize(link, &fields),
        "agent.query" => query(link, &fields),
        "agent.cancel" => Ok(Request::Cancel(turn(&fields)?)),
        "agent.resume" => Ok(Request::Resume(turn(&fields)?)),
        "tool.approve" => approve(&fields),
        "context.update" => update(link, &fields),
        "session.save" => save(&fields),
        "session.load" => load(&fields),
        "session.list" => list(&fields),
        "session.export" => export(&fields),
        "session.delete" => {
            Ok(Request::Delete(session(&fields, fields.required_text("session_id")?)?))
        }
        "prompts.list" => prompts(link, &fields),
        other => Err(Error::no_method(other)),
    }
}

const METHODS: [&str; 12] = [
    "initialize",
    "agent.query",
    "agent.cancel",
    "agent.resume",
    "tool.approve",
    "context.update",
    "session.save",
    "session.load",
    "session.list",
    "session.export",
    "session.delete",
    "prompts.list",
];

fn initialize(link: &mut Link, fields: &Fields<'_>) -> Result<Request, Error> {
    if link.client.is_some() {
        return Err(Error::invalid("the connection is initialized already"));
    }
    check_version(fields.required_text("protocol_version")?)?;
    let info = fields.object("client_info")?;
    let name = info.text("name")?.unwrap_or_default().to_owned();
    info.text("version")?;
    size(fields)?;
    fields.object("config")?;
    let capabilities = fields.text_list("capabilities")?.unwrap_or_default();
    let capabilities = capabilities.into_iter().map(Into::into).collect();
    link.client = Some(Client { name, capabilities });
    Ok(Request::Initialize)
}

/// Fails if a version is not supported. Versions with the same major number are compatible.
fn check_version(version: &str) -> Result<(), Error> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let numbers: Vec<Option<u64>> = core.split('.').map(|part| part.parse().ok()).collect();
    match numbers.as_slice() {
        [Some(1), Some(_), Some(_)] => Ok(()),
        [Some(_), Some(_), Some(_)] => {
            let message = format!("Invalid params: protocol_version {version} is not supported");
            let data = json!({
                "field": "protocol_version",
                "requested": version,
                "supported": [wire::VERSION],
            });
            Err(Error::new(INVALID_PARAMS, message).with(data))
        }
        _ => Err(Error::field("protocol_version", "a version like 1.0.0")),
    }
}

fn size(fields: &Fields<'_>) -> Result<(), Error> {
    let size = fields.object("terminal_size")?;
    for name in ["cols", "rows", "pixel_width", "pixel_height"] {
        size.unsigned(name)?;
    }
    Ok(())
}

fn query(link: &mut Link, fields: &Fields<'_>) -> Result<Request, Error> {
    let message = fields.required_text("message")?;
    if message.trim().is_empty() {
        return Err(fields.invalid("message", "a text that is not empty"));
    }
    let given = fields.object("options")?;
    let stream = given.flag("stream")?.unwrap_or(true);
    let options = options(&given)?;
    link.context.update(&fields.object("context")?)?;
    Ok(Request::Query { message: message.to_owned(), options, stream })
}

fn options(fields: &Fields<'_>) -> Result<TurnOptions, Error> {
    let max_tokens = fields.unsigned("max_tokens")?;
    if max_tokens == Some(0) {
        return Err(fields.invalid("max_tokens", "at least 1"));
    }
    let temperature = fields.number("temperature")?;
    if temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err(fields.invalid("temperature", "a number from 0 to 2"));
    }
    let tools = match fields.flag("tools_enabled")? {
        Some(false) => ToolUse::Withheld,
        Some(true) | None => ToolUse::Offered,
    };
    let asking = match fields.flag("require_approval")? {
        Some(true) => ApprovalMode::Strict,
        Some(false) => ApprovalMode::Waived,
        None => ApprovalMode::Policy,
    };
    let model = match fields.text("model")? {
        None => None,
        Some(name) => {
            Some(ModelRef::parse(name).ok_or_else(|| fields.invalid("model", "a provider/model"))?)
        }
    };
    let sampling = Sampling { max_tokens, temperature, ..Sampling::default() };
    Ok(TurnOptions { model, sampling, tools, asking, ..TurnOptions::default() })
}

fn turn(fields: &Fields<'_>) -> Result<TurnId, Error> {
    let query = fields.required_text("query_id")?;
    wire::turn_of(query).ok_or_else(|| unknown_query(query))
}

/// The error for an unknown query.
pub(super) fn unknown_query(query: &str) -> Error {
    Error::new(INVALID_PARAMS, format!("Invalid params: there is no query {query}"))
        .with(json!({ "field": "query_id" }))
}

/// The error for a call that does not wait for approval.
pub(super) fn unknown_execution(execution: &str) -> Error {
    Error::new(INVALID_PARAMS, format!("Execution not found: {execution}"))
        .with(json!({ "field": "execution_id" }))
}

fn approve(fields: &Fields<'_>) -> Result<Request, Error> {
    let execution = fields.required_text("execution_id")?;
    let approved = fields.flag("approved")?;
    let approved = approved.ok_or_else(|| fields.invalid("approved", "true or false"))?;
    let options = fields.object("options")?;
    let remember = match (options.flag("apply_to_similar")?, options.flag("remember_choice")?) {
        (Some(true), _) => RememberScope::Similar,
        (_, Some(true)) => RememberScope::Same,
        _ => RememberScope::Once,
    };
    let reason = fields.text("reason")?.map(Into::into);
    let call = wire::call_of(execution).ok_or_else(|| unknown_execution(execution))?;
    let answer = if approved { ApprovalDecision::Allow } else { ApprovalDecision::Deny };
    let (turn, by) = (None, DecidedBy::Client);
    let (question, content) = (call.as_str().to_owned().into(), fields.value("content").cloned());
    Ok(Request::Approve(Approve { question, turn, answer, reason, by, remember, content }))
}

fn update(link: &mut Link, fields: &Fields<'_>) -> Result<Request, Error> {
    size(fields)?;
    link.context.update(fields)?;
    Ok(Request::Update)
}

fn prompts(link: &mut Link, fields: &Fields<'_>) -> Result<Request, Error> {
    link.context.update(&fields.object("context")?)?;
    Ok(Request::Prompts)
}

fn save(fields: &Fields<'_>) -> Result<Request, Error> {
    let path = path(fields, fields.required_text("path")?)?;
    let history = fields.flag("include_history")?.unwrap_or(true);
    let blocks = fields.flag("include_blocks")?.unwrap_or(true);
    Ok(Request::Save { path, history, blocks })
}

fn load(fields: &Fields<'_>) -> Result<Request, Error> {
    match (fields.text("session_id")?, fields.text("path")?) {
        (Some(id), _) => {
            let received = fields.unsigned("offset")?.unwrap_or(0);
            Ok(Request::LoadSession { session: session(fields, id)?, received })
        }
        (None, Some(name)) => Ok(Request::LoadFile(path(fields, name)?)),
        (None, None) => Err(fields.invalid("path", "a string, unless session_id is given")),
    }
}

fn path(fields: &Fields<'_>, path: &str) -> Result<PathBuf, Error> {
    let is_valid = path.starts_with('/') && !path.contains('\0');
    is_valid.then(|| path.into()).ok_or_else(|| fields.invalid("path", "an absolute path"))
}

fn list(fields: &Fields<'_>) -> Result<Request, Error> {
    let limit = fields.unsigned("limit")?.unwrap_or(LIST_DEFAULT).min(LIST_LIMIT);
    Ok(Request::List(usize::try_from(limit).unwrap_or(usize::MAX)))
}

fn export(fields: &Fields<'_>) -> Result<Request, Error> {
    let session = fields.text("session_id")?.map(|id| session(fields, id)).transpose()?;
    let format = match fields.text("format")? {
        None | Some("markdown" | "md") => Format::Markdown,
        Some("json") => Format::Json,
        Some(_) => return Err(fields.invalid("format", "markdown or json")),
    };
    Ok(Request::Export { session, format })
}

fn session(fields: &Fields<'_>, id: &str) -> Result<SessionId, Error> {
    SessionId::parse(id).ok_or_else(|| fields.invalid("session_id", "the id of a session"))
}

/// Maps an error of the core to an error response.
pub(super) fn rpc_error(error: &port::Error) -> Error {
    let code = match error {
        port::Error::NotFound(_) => {
            return Error::new(INVALID_PARAMS, format!("Invalid params: {error}"))
                .with(json!({ "field": "session_id" }));
        }
        port::Error::Refused(rpc_error) => match rpc_error {
            Refusal::UnknownModel(_) | Refusal::UnsupportedInput { .. } => wire::MODEL_ERROR,
            Refusal::NothingPending(_) | Refusal::NotPending(_) | Refusal::WrongTurn { .. } => {
                INVALID_PARAMS
            }
            Refusal::UnknownTurn(_)
            | Refusal::UnknownCall(_)
            | Refusal::BadTools(_)
            | Refusal::QuestionClosed(_)
            | Refusal::InvalidAnswer(_)
            | Refusal::EmptyMessage
            | Refusal::UnknownAttachment(_) => INVALID_PARAMS,
            Refusal::Busy(_)
            | Refusal::Exists(_)
            | Refusal::NotBegun(_)
            | Refusal::CallOver(_)
            | Refusal::NotDelegated(_)
            | Refusal::Claimed(_)
            | Refusal::KeyReused(_)
            | Refusal::Succeeded(_)
            | Refusal::BadName
            | Refusal::NothingToRevert(_)
            | Refusal::AlreadyReverted(_)
            | Refusal::NotReverted(_)
            | Refusal::NothingToCompact => wire::AGENT_ERROR,
        },
        port::Error::Closing => wire::CANCELLED,
        port::Error::Ahead(..) | port::Error::ReadOnly | port::Error::Storage(_) => INTERNAL_ERROR,
    };
    Error::new(code, error.to_string())
}
