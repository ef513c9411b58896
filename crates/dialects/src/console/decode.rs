//! Decodes the requests of the page to commands.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::command::{Approve, Command, NewMessage, TurnStart};
use quintet_kernel::event::{
    ApprovalDecision, ApprovalMode, DecidedBy, NewSession, RememberScope, Seq, ToolUse, TurnOptions,
};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{Effort, ModelRef, Sampling};
use quintet_kernel::port::{Audio, Error};
use quintet_kernel::run::{ControlAction, ControlMode, NewRun, RunCommand};
use quintet_kernel::{ApprovalId, CallId, RunId, SessionId, TurnId};
use serde::de::DeserializeOwned;
use serde_json::Map;

use super::wire;
use crate::{http_status, wav};

/// The most bytes that the body of a request may have.
pub(super) const BODY_LIMIT: usize = 1024 * 1024;
/// The most bytes of a message with its files, which are written in base64.
pub(super) const MESSAGE_LIMIT: usize = 48 * 1024 * 1024;
/// The most bytes of the key that the client chose for a message.
const KEY_LIMIT: usize = 200;
/// The sender of the page's commands in the timeline of a run.
const REQUESTED_BY: &str = "console";

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Page,
    File(String),
    Login,
    Start,
    Models,
    Usage,
    Overhead,
    Doctor,
    Configuration,
    ToolServers,
    AllowServers,
    DisallowServers,
    Stream,
    Search,
    Sessions,
    CreateSession,
    Session(SessionId),
    History(SessionId),
    SessionUsage(SessionId),
    Family(SessionId),
    Prompt(SessionId),
    Attachment(SessionId, String),
    Artifact(SessionId, CallId, String),
    AttachmentText(SessionId, String),
    ArtifactText(SessionId, CallId, String),
    Memory(SessionId),
    SendMessage(SessionId),
    AnswerQuestion(SessionId),
    Stop(SessionId),
    Fork(SessionId),
    ChooseModel(SessionId),
    Compact(SessionId),
    Delete(SessionId),
    Changes(SessionId, TurnId),
    Undo(SessionId, TurnId),
    TryUndo(SessionId, TurnId),
    Redo(SessionId, TurnId),
    Retry(SessionId, TurnId),
    Withdraw(SessionId, TurnId),
    Transcribe,
    Speak,
    Runs,
    CreateRun,
    ControlRun(RunId),
}

/// An error reply to the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) error: String,
}

impl Reply {
    pub(super) fn new(status: u16, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }
}

/// What a request that changes something asks for.
#[derive(Debug)]
pub(super) enum Step {
    Create(NewSession),
    Submit(SessionId, Command),
    /// A message with files, whose content is to be stored first.
    Send(SessionId, Box<NewMessage>, Vec<File>),
    /// An answer, which is valid only for a question with this digest.
    Answer(SessionId, Approve, String),
    Fork(SessionId, Option<Seq>),
    Delete(SessionId),
    CreateRun(NewRun),
    ControlRun(RunId, RunCommand),
    /// Servers of a folder, by the digests of what was shown.
    AllowServers(PathBuf, Vec<String>),
    DisallowServers(PathBuf, Vec<String>),
    Transcribe(Audio),
    /// Read a sentence of a text aloud, by its number from 0 on.
    Speak(String, usize),
}

/// A file as it was sent.
#[derive(Debug)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) content: Vec<u8>,
}

/// Reads the body of a request that changes something. Fails if the body is not what the route takes.
pub(super) fn decode(route: &Route, body: &[u8]) -> Result<Step, Reply> {
    match route {
        Route::CreateSession => create(json(body)?),
        Route::SendMessage(id) => message(id, json(body)?),
        Route::AnswerQuestion(id) => answer(id, json(body)?),
        Route::Stop(id) => {
            let stop: wire::Stop =
                if body.trim_ascii().is_empty() { wire::Stop::default() } else { json(body)? };
            Ok(Step::Submit(id.clone(), Command::Cancel { reason: stop.reason }))
        }
        Route::Fork(id) => Ok(Step::Fork(id.clone(), json::<wire::Fork>(body)?.at)),
        Route::ChooseModel(id) => {
            let model = model_ref(&json::<wire::ChooseModel>(body)?.model)?;
            Ok(Step::Submit(id.clone(), Command::SwitchModel(model)))
        }
        Route::Compact(id) => Ok(Step::Submit(id.clone(), Command::Compact)),
        Route::Delete(id) => Ok(Step::Delete(id.clone())),
        Route::Undo(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::Revert { turn: turn.clone() }))
        }
        Route::Redo(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::Reapply { turn: turn.clone() }))
        }
        Route::Retry(id, turn) => {
            Ok(Step::Submit(id.clone(), Command::StartTurn { turn: turn.clone() }))
        }
        Route::Withdraw(id, turn) => {
            let command = Command::CancelTurn { turn: turn.clone(), reason: None };
            Ok(Step::Submit(id.clone(), command))
        }
        Route::CreateRun => create_run(&json(body)?),
        Route::ControlRun(run) => control_run(run, json(body)?),
        Route::Transcribe => Ok(Step::Transcribe(recording(&json(body)?)?)),
        Route::Speak => {
            let wire::Speak { text, sentence } = json(body)?;
            Ok(Step::Speak(text, sentence))
        }
        Route::AllowServers => {
            let (folder, digests) = servers(json(body)?)?;
            Ok(Step::AllowServers(folder, digests))
        }
        Route::DisallowServers => {
            let (folder, digests) = servers(json(body)?)?;
            Ok(Step::DisallowServers(folder, digests))
        }
        Route::Page
        | Route::File(_)
        | Route::Login
        | Route::Start
        | Route::Runs
        | Route::Models
        | Route::Usage
        | Route::Overhead
        | Route::Doctor
        | Route::Configuration
        | Route::ToolServers
        | Route::Stream
        | Route::Search
        | Route::Sessions
        | Route::Session(_)
        | Route::History(_)
        | Route::SessionUsage(_)
        | Route::Family(_)
        | Route::Prompt(_)
        | Route::Attachment(..)
        | Route::Artifact(..)
        | Route::AttachmentText(..)
        | Route::ArtifactText(..)
        | Route::Memory(_)
        | Route::Changes(..)
        | Route::TryUndo(..) => Err(Reply::new(405, "this path takes GET only")),
    }
}

/// The status and message for an error of the core.
pub(super) fn refusal(error: &Error) -> Reply {
    Reply::new(http_status::of(error), error.to_string())
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Reply> {
    serde_json::from_slice(body).map_err(|error| Reply::new(400, format!("bad request: {error}")))
}

fn create(body: wire::CreateSession) -> Result<Step, Reply> {
    let workspace = folder(body.workspace.trim())?;
    let model = body.model.filter(|model| !model.is_empty());
    Ok(Step::Create(NewSession {
        workspace,
        model: model.as_deref().map(model_ref).transpose()?,
        ..NewSession::default()
    }))
}

fn folder(path: &str) -> Result<PathBuf, Reply> {
    if !Path::new(path).is_absolute() || path.contains('\0') {
        let wrong = "the workspace must be an absolute path, such as /home/me/app";
        return Err(Reply::new(400, wrong));
    }
    Ok(PathBuf::from(path))
}

fn servers(body: wire::NameServers) -> Result<(PathBuf, Vec<String>), Reply> {
    if body.digests.is_empty() {
        return Err(Reply::new(400, "digests are missing: name at least one server"));
    }
    Ok((folder(&body.workspace)?, body.digests))
}

fn message(session: &SessionId, body: wire::SendMessage) -> Result<Step, Reply> {
    if body.text.trim().is_empty() && body.files.is_empty() {
        return Err(Reply::new(400, "the message is empty"));
    }
    if body.key.is_empty() || body.key.len() > KEY_LIMIT {
        return Err(Reply::new(400, format!("key must have 1 to {KEY_LIMIT} bytes")));
    }
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let effort = filled(body.effort).map(|word| {
        Effort::parse(&word).ok_or_else(|| Reply::new(400, format!("unknown effort: {word}")))
    });
    let (tools, asking) = match body.mode {
        wire::Mode::Default => (ToolUse::Offered, ApprovalMode::Policy),
        wire::Mode::Ask => (ToolUse::Offered, ApprovalMode::Strict),
        wire::Mode::Answer => (ToolUse::Withheld, ApprovalMode::Policy),
    };
    let options = TurnOptions {
        model: filled(body.model).map(|model| model_ref(&model)).transpose()?,
        sampling: Sampling { effort: effort.transpose()?, ..Sampling::default() },
        tools,
        asking,
        key: Some(body.key),
        ..TurnOptions::default()
    };
    let text = (!body.text.is_empty()).then_some(Part::Text(body.text));
    let parts = text.into_iter().collect();
    let say = NewMessage::new(Role::User, parts, TurnStart::Queued, options);
    let files = body.files.into_iter().map(file).collect::<Result<_, _>>()?;
    Ok(Step::Send(session.clone(), Box::new(say), files))
}

fn file(file: wire::File) -> Result<File, Reply> {
    let content = STANDARD.decode(&file.base64);
    let content = content.map_err(|_| Reply::new(400, format!("{}: bad base64", file.name)))?;
    let mime = if file.mime.is_empty() { "application/octet-stream".into() } else { file.mime };
    if mime.len() > KEY_LIMIT || mime.chars().any(char::is_control) {
        return Err(Reply::new(400, format!("{}: bad type", file.name)));
    }
    Ok(File { name: file.name, mime, content })
}

fn recording(body: &wire::Recording) -> Result<Audio, Reply> {
    let content = STANDARD.decode(&body.wav);
    let content = content.map_err(|_| Reply::new(400, "the recording is not valid base64"))?;
    wav::parse(&content).map_err(|error| Reply::new(400, format!("the recording: {error}")))
}

/// How a file is given to a model.
pub(super) fn media_kind(mime: &str) -> MediaKind {
    match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::File,
    }
}

fn answer(session: &SessionId, body: wire::AnswerQuestion) -> Result<Step, Reply> {
    let unknown = || Reply::new(400, format!("unknown question: {:?}", body.question));
    let approve = Approve {
        question: ApprovalId::parse(&body.question).ok_or_else(unknown)?,
        turn: None,
        answer: match body.answer {
            wire::Word::Approve => ApprovalDecision::Allow,
            wire::Word::Deny => ApprovalDecision::Deny,
        },
        reason: body.reason.filter(|reason| !reason.trim().is_empty()),
        by: DecidedBy::Client,
        remember: match body.remember {
            wire::Scope::Once => RememberScope::Once,
            wire::Scope::Same => RememberScope::Same,
            wire::Scope::Similar => RememberScope::Similar,
        },
        content: body.content,
    };
    Ok(Step::Answer(session.clone(), approve, body.digest))
}

fn create_run(body: &wire::CreateRun) -> Result<Step, Reply> {
    let (workspace, query) = (body.workspace.trim(), body.task.trim());
    if workspace.is_empty() || query.is_empty() {
        return Err(Reply::new(400, "a run needs a queue and a task"));
    }
    Ok(Step::CreateRun(NewRun {
        workspace: workspace.into(),
        query: query.into(),
        requested_by: Some(REQUESTED_BY.into()),
        agent: None,
        files: Vec::new(),
        metadata: Map::new(),
        conversation: None,
    }))
}

fn control_run(run: &RunId, body: wire::ControlRun) -> Result<Step, Reply> {
    let action = match body {
        wire::ControlRun::Pause => ControlAction::Pause,
        wire::ControlRun::Resume => ControlAction::Resume,
        wire::ControlRun::Stop => ControlAction::Stop,
        wire::ControlRun::SetControlMode { mode } => {
            let unknown = || Reply::new(400, format!("unknown control mode: {mode}"));
            ControlAction::SetMode(ControlMode::named(&mode).ok_or_else(unknown)?)
        }
    };
    let requested_by = Some(REQUESTED_BY.into());
    let command = RunCommand::Control { action, requested_by, bulk: false };
    Ok(Step::ControlRun(run.clone(), command))
}

fn model_ref(text: &str) -> Result<ModelRef, Reply> {
    ModelRef::parse(text)
        .ok_or_else(|| Reply::new(400, format!("a model is provider/model, not {text:?}")))
}
