//! Decodes requests into commands.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::command::{Approve, Command, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, DecidedBy, NewSession, RememberScope, TurnOptions};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{Effort, ModelRef, Sampling};
use quintet_kernel::port::Error;
use quintet_kernel::{ApprovalId, Refusal, SessionId, TurnId};
use serde::de::DeserializeOwned;

use super::wire;
use crate::http_status;

/// The largest attachment.
pub(super) const FILE_BYTES_LIMIT: usize = 25 * 1024 * 1024;
/// The largest body of any other request.
pub(super) const BODY_BYTES_LIMIT: usize = 8 * 1024 * 1024;

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    OpenApi,
    Models,
    Policy,
    SetPolicy,
    Folder,
    /// Spec runs do not exist here; the list is always empty, because dashboards of the original server
    /// request it.
    Runs,
    CreateSession,
    ListSessions,
    GetSession(SessionId),
    AddMessage(SessionId),
    Events(SessionId),
    Approve(SessionId),
    Cancel(String),
    Retry(SessionId, String),
    Revert(SessionId, String),
    CheckRevert(SessionId, String),
    Reapply(SessionId, String),
    Changes(SessionId, String),
    Context(SessionId),
    Attach(SessionId),
    SetMode(SessionId),
    SetModel(SessionId),
    Compact(SessionId),
    Complete(SessionId),
}

/// A response without a result: a status and, usually, an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) error: Option<String>,
}

impl Reply {
    pub(super) fn new(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: Some(error.into()) }
    }

    pub(super) fn bare(status: u16) -> Self {
        Self { status, error: None }
    }
}

/// The decoded form of a request that changes something.
#[derive(Debug)]
pub(super) enum Step {
    Create(NewSession),
    Submit(SessionId, Command),
    /// Two commands, in order.
    Both(SessionId, Box<[Command; 2]>),
    /// Content to store and then to attach.
    Upload(SessionId, File),
}

/// An uploaded file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) content: Vec<u8>,
}

/// Decodes a request that changes something. Fails with the reply if the body is invalid.
pub(super) fn decode(route: &Route, body: &[u8]) -> Result<Step, Reply> {
    match route {
        Route::CreateSession => create(json(body)?),
        Route::AddMessage(id) => message(id, json(body)?),
        Route::Approve(id) => approve(id, json(body)?),
        Route::Cancel(id) => cancel(id, body),
        Route::Retry(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::StartTurn { turn: turn_id(turn)? }))
        }
        Route::Revert(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::Revert { turn: turn_id(turn)? }))
        }
        Route::Reapply(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::Reapply { turn: turn_id(turn)? }))
        }
        Route::Attach(id) => attach(id, json(body)?),
        Route::SetMode(id) => mode(id, json(body)?),
        Route::SetModel(id) => model_choice(id, &json::<ModelBody>(body)?),
        Route::Compact(id) => Ok(Step::Submit(id.clone(), Command::Compact)),
        Route::Complete(id) => Ok(Step::Submit(id.clone(), Command::Close { reason: None })),
        Route::Health
        | Route::OpenApi
        | Route::Models
        | Route::Policy
        | Route::SetPolicy
        | Route::Folder
        | Route::Runs
        | Route::ListSessions
        | Route::GetSession(_)
        | Route::Context(_)
        | Route::Changes(..)
        | Route::CheckRevert(..)
        | Route::Events(_) => Err(Reply::bare(405)),
    }
}

/// Maps an error of the core to a reply.
pub(super) fn error_reply(error: &Error) -> Reply {
    let status = match error {
        // Clients of the original server expect these statuses.
        Error::Refused(Refusal::Busy(_)) => 500,
        Error::Refused(Refusal::NothingPending(_) | Refusal::NotPending(_)) => 400,
        error => http_status::of(error),
    };
    Reply::new(status, error.to_string())
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reply> {
    serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => Reply::new(400, format!("invalid json: {error}")),
        _ => Reply::new(400, "invalid json"),
    })
}

fn create(body: wire::CreateSession) -> Result<Step, Reply> {
    if body.workspace_path.trim().is_empty() {
        return Err(Reply::new(400, "workspacePath is empty"));
    }
    if !Path::new(&body.workspace_path).is_absolute() || body.workspace_path.contains('\0') {
        return Err(Reply::new(400, "workspace_path must be an absolute path"));
    }
    let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
    let mode = non_empty(body.mode).unwrap_or_else(|| "chat".into());
    check_mode(&mode)?;
    let mut labels = BTreeMap::from([("mode".to_owned(), mode)]);
    labels.extend(non_empty(body.spec_path).map(|path| ("spec_path".to_owned(), path)));
    Ok(Step::Create(NewSession {
        workspace: body.workspace_path.into(),
        system_prompt: non_empty(body.system_prompt),
        model: non_empty(body.model).map(|model| model_ref(&model)).transpose()?,
        labels,
        ..NewSession::default()
    }))
}

fn message(session: &SessionId, body: wire::AddMessage) -> Result<Step, Reply> {
    let role = match body.role.as_str() {
        "" => return Err(Reply::new(400, "role required")),
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => return Err(Reply::new(400, format!("unknown role: {other}"))),
    };
    let sampling = sampling(&body)?;
    let parts = body.parts.into_iter().map(part).collect::<Result<_, _>>()?;
    let run = if body.auto_run { TurnStart::Now } else { TurnStart::Later };
    let model = body.model.as_deref().filter(|model| !model.is_empty());
    let model = model.map(model_ref).transpose()?;
    let options = TurnOptions { model, sampling, ..TurnOptions::default() };
    let message = NewMessage::new(role, parts, run, options);
    Ok(Step::Submit(session.clone(), Command::AddMessage(Box::new(message))))
}

/// The sampling options of a message.
fn sampling(body: &wire::AddMessage) -> Result<Sampling, Reply> {
    let parse = |name: &str| {
        let names = Effort::ALL.map(Effort::name).join(", ");
        let wrong = || Reply::new(400, format!("effort must be one of {names}, not {name}"));
        Effort::parse(name).ok_or_else(wrong)
    };
    let effort = body.effort.as_deref().filter(|name| !name.is_empty()).map(parse).transpose()?;
    if body.temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err(Reply::new(400, "temperature must be between 0 and 2"));
    }
    if body.max_tokens == Some(0) {
        return Err(Reply::new(400, "max_tokens must be at least 1"));
    }
    let (max_tokens, temperature) = (body.max_tokens, body.temperature);
    Ok(Sampling { max_tokens, temperature, effort, ..Sampling::default() })
}

fn part(part: wire::InPart) -> Result<Part, Reply> {
    let kind = match part.kind.as_str() {
        "text" => {
            return part
                .text
                .map(Part::Text)
                .ok_or_else(|| Reply::new(400, "text part without text"));
        }
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        "file" => MediaKind::File,
        other => return Err(Reply::new(400, format!("unknown part type: {other}"))),
    };
    let Some(reference) = part.reference else {
        return Err(Reply::new(400, format!("{} part without ref", kind.name())));
    };
    let name = reference.strip_prefix("attachments/").unwrap_or(&reference).into();
    Ok(Part::Media { kind, name, mime: part.mime_type.filter(|mime| !mime.is_empty()) })
}

fn approve(session: &SessionId, body: wire::Approve) -> Result<Step, Reply> {
    if body.tool_call_id.is_empty() {
        return Err(Reply::new(400, "tool_call_id required"));
    }
    let unknown =
        || Reply::new(400, format!("no approval pending for tool call {}", body.tool_call_id));
    let question = ApprovalId::parse(&body.tool_call_id).ok_or_else(unknown)?;
    let turn = match body.turn_id.as_str() {
        "" => None,
        id => Some(
            TurnId::parse(id).ok_or_else(|| Reply::new(400, format!("turn not found: {id}")))?,
        ),
    };
    let answer = match body.action.as_str() {
        "" | "approve" => ApprovalDecision::Allow,
        "deny" => ApprovalDecision::Deny,
        other => return Err(Reply::new(400, format!("unknown action: {other}"))),
    };
    let remember = match (body.apply_to_similar, body.remember_choice) {
        (true, _) => RememberScope::Similar,
        (false, true) => RememberScope::Same,
        (false, false) => RememberScope::Once,
    };
    let (reason, by) = (body.reason, DecidedBy::Client);
    let content = body.content;
    let approve = Approve { question, turn, answer, reason, by, remember, content };
    Ok(Step::Submit(session.clone(), Command::Approve(approve)))
}

fn cancel(session: &str, body: &[u8]) -> Result<Step, Reply> {
    let body: wire::Cancel = match body.trim_ascii() {
        [] => wire::Cancel::default(),
        body => json(body)?,
    };
    // Cancelling an unknown session is not an error, see `serve`.
    let id = SessionId::parse(session).ok_or(Reply::bare(200))?;
    Ok(Step::Submit(id, Command::Cancel { reason: body.reason }))
}

/// Parses the turn id in a path.
pub(super) fn turn_id(turn: &str) -> Result<TurnId, Reply> {
    TurnId::parse(turn).ok_or_else(|| Reply::new(404, format!("turn not found: {turn}")))
}

fn attach(session: &SessionId, body: wire::Attach) -> Result<Step, Reply> {
    if body.content_base64.is_empty() {
        return Err(Reply::new(400, "content_base64 required"));
    }
    let content = STANDARD
        .decode(body.content_base64.trim())
        .map_err(|_| Reply::new(400, "invalid base64 content"))?;
    upload(session, body.name, body.mime_type, content)
}

/// Checks an uploaded file.
pub(super) fn upload(
    session: &SessionId,
    name: String,
    mime: Option<String>,
    content: Vec<u8>,
) -> Result<Step, Reply> {
    if content.len() > FILE_BYTES_LIMIT {
        return Err(Reply::new(413, "attachment is larger than 25 MiB"));
    }
    let mime = mime.filter(|mime| !mime.is_empty());
    let mime = mime.unwrap_or_else(|| "application/octet-stream".into());
    if mime.len() > 200 || mime.chars().any(char::is_control) {
        return Err(Reply::new(400, "invalid mime_type"));
    }
    Ok(Step::Upload(session.clone(), File { name, mime, content }))
}

fn mode(session: &SessionId, body: wire::SetMode) -> Result<Step, Reply> {
    if body.mode.is_empty() {
        return Err(Reply::new(400, "mode is required"));
    }
    check_mode(&body.mode)?;
    let set = |key: &str, value| Command::SetLabel { key: key.into(), value: Some(value) };
    let mode = set("mode", body.mode);
    Ok(match body.spec_path.filter(|path| !path.is_empty()) {
        None => Step::Submit(session.clone(), mode),
        Some(path) => Step::Both(session.clone(), Box::new([mode, set("spec_path", path)])),
    })
}

fn check_mode(mode: &str) -> Result<(), Reply> {
    match mode {
        "chat" | "spec" => Ok(()),
        _ => Err(Reply::new(400, "mode must be chat or spec")),
    }
}

#[derive(serde::Deserialize)]
struct ModelBody {
    #[serde(default)]
    model: String,
}

fn model_choice(session: &SessionId, body: &ModelBody) -> Result<Step, Reply> {
    let model = model_ref(&body.model)?;
    Ok(Step::Submit(session.clone(), Command::SwitchModel(model)))
}

fn model_ref(text: &str) -> Result<ModelRef, Reply> {
    ModelRef::parse(text)
        .ok_or_else(|| Reply::new(400, format!("model must be provider/model, not {text:?}")))
}
