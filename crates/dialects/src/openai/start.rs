//! Starts the turn that answers a request: in a new session, in a continued session, or by returning
//! results to a turn that waits for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use quintet_kernel::command::{Command, ImportedMessage, NewAttachment, NewMessage, TurnStart};
use quintet_kernel::event::{
    ApprovalMode, Event, NewSession, RareOptions, Seq, Setup, ToolUse, TurnOptions,
};
use quintet_kernel::message::{self, MediaKind, Role};
use quintet_kernel::model::{Constraints, Sampling, ToolChoice};
use quintet_kernel::port::Error;
use quintet_kernel::tool::Outcome;
use quintet_kernel::toolset::Toolset;
use quintet_kernel::{CallId, ClientRef, Refusal, SessionId, TurnId};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::decode::content::{Media, Part};
use super::decode::conversation::{
    CallResult, Conversation, FRONT_END, NewInput, call_id, client_tool, recalled,
};
use super::decode::{FunctionTool, Generation, Message};
use super::encode::turn::CLIENT_TOOLS;
use super::reply::Reply;
use super::response_id::ClientCallId;
use super::serve::{AppState, CancelOnDrop};

/// A turn that answers a request.
#[derive(Clone, Debug)]
pub(super) struct AgentRun {
    pub(super) session: SessionId,
    pub(super) turn: TurnId,
    /// The first event of the turn.
    pub(super) turn_begins: Seq,
    /// The first event of the answer to this request.
    pub(super) begins: Seq,
}

/// A started turn; dropping the value cancels the turn.
#[derive(Debug)]
pub(super) struct StartedRun {
    pub(super) run: AgentRun,
    pub(super) cancel: CancelOnDrop,
}

/// The parameters of a new turn.
#[derive(Debug)]
pub(super) struct NewRun {
    pub(super) generation: Generation,
    /// The session that is continued; `None` for a new one.
    pub(super) continued: Option<SessionId>,
    /// The data stored with the first event of the answer.
    pub(super) data: Map<String, Value>,
    /// True if the turn continues without a client.
    pub(super) is_background: bool,
}

impl NewRun {
    /// Starts the turn. If the client disconnects meanwhile, the turn is cancelled.
    pub(super) async fn start(self, app: &AppState) -> Result<StartedRun, Reply> {
        let (sender, receiver) = oneshot::channel();
        let owned = app.clone();
        app.tasks.spawn(async move {
            let Self { generation, continued, data, is_background } = self;
            let run = start(&owned, generation, continued.as_ref(), data).await;
            let started = run.map(|run| {
                let mut cancel = owned.cancel_on_drop(&run.session, &run.turn);
                if is_background {
                    cancel.release();
                }
                StartedRun { run, cancel }
            });
            // A turn without a receiver is dropped, which cancels it.
            let _ = sender.send(started);
        });
        receiver.await.map_err(|_| Reply::server(500, "the run could not be started"))?
    }
}

/// Starts the turn in a continued or new session, or returns results to the turn that waits for them.
async fn start(
    app: &AppState,
    generation: Generation,
    continued: Option<&SessionId>,
    data: Map<String, Value>,
) -> Result<AgentRun, Reply> {
    let Generation { target, instructions, messages, tools, may_call, sampling, workspace, .. } =
        generation;
    let conversation = Conversation::of(messages)?;
    if let NewInput::Results(results) = &conversation.asked
        && let Some(run) = resume(app, results, &data).await?
    {
        return Ok(run);
    }
    let session = match continued {
        Some(session) => session.clone(),
        None => create(app, workspace).await?,
    };
    let submitted = async {
        import_history(app, &session, &conversation).await?;
        let mut data = data;
        let names = tools.iter().map(|tool| tool.name.as_str().into());
        data.insert(CLIENT_TOOLS.into(), Value::Array(names.collect()));
        let options = TurnOptions {
            model: target.model().cloned(),
            sampling: agent_sampling(sampling),
            tools: if may_call { ToolUse::Offered } else { ToolUse::Withheld },
            asking: ApprovalMode::Unattended,
            more: RareOptions {
                front_end_data: json!({ FRONT_END: data }),
                ..RareOptions::default()
            }
            .unless_empty(),
            ..TurnOptions::default()
        };
        let setup = Setup {
            // Instructions of earlier requests do not apply to a continued session.
            system_prompt: instructions.or(continued.map(|_| String::new())),
            toolset: Some(toolset(app, &session, &tools).await?),
            workspace: None,
        };
        let mut message = new_message(app, conversation.asked, options).await?;
        message.setup = setup;
        Ok(app.services.sessions.submit(&session, Command::AddMessage(Box::new(message))).await?)
    };
    let receipt = match submitted.await {
        Ok(receipt) => receipt,
        Err(reply) => {
            // A session that was created for a refused request is deleted.
            if continued.is_none()
                && let Err(error) = app.services.sessions.remove(&session).await
            {
                tracing::warn!(%session, %error, "removing an unused session failed");
            }
            return Err(reply);
        }
    };
    let added = receipt.message();
    let added = added.ok_or_else(|| Reply::server(500, "the message was not added"))?;
    let (turn, begins) = (added.turn.clone(), added.seq);
    Ok(AgentRun { session, turn, turn_begins: begins, begins })
}

/// The sampling of an agent. An agent that had to call a tool in every step would never end.
fn agent_sampling(sampling: Sampling) -> Sampling {
    let without_choice = |constraints: Box<Constraints>| {
        Constraints { tool_choice: ToolChoice::Auto, ..*constraints }.unless_empty()
    };
    Sampling { constraints: sampling.constraints.and_then(without_choice), ..sampling }
}

async fn create(app: &AppState, workspace: Option<PathBuf>) -> Result<SessionId, Reply> {
    let workspace = match workspace {
        Some(folder) => {
            if !is_folder(&folder).await {
                let why = format!("metadata.workspace is not a folder: {}", folder.display());
                return Err(Reply::invalid_value("metadata.workspace", why));
            }
            folder
        }
        None => {
            let default = app.settings.workspace.clone();
            tokio::fs::create_dir_all(&default).await.map_err(|error| {
                let why = format!("the workspace {} cannot be used: {error}", default.display());
                Reply::server(500, why)
            })?;
            default
        }
    };
    let labels = BTreeMap::from([(FRONT_END.to_owned(), "agent".to_owned())]);
    let origin = NewSession { workspace, labels, ..NewSession::default() };
    Ok(app.services.sessions.create(origin).await?.session)
}

async fn is_folder(path: &Path) -> bool {
    tokio::fs::metadata(path).await.is_ok_and(|found| found.is_dir())
}

/// The tools of a session: the daemon's and the client's. The client's tool is used if both have the same
/// name.
async fn toolset(
    app: &AppState,
    session: &SessionId,
    tools: &[FunctionTool],
) -> Result<Toolset, Reply> {
    if tools.is_empty() {
        return Ok(Toolset::default());
    }
    let timeout = app.settings.tool_timeout.map(|timeout| timeout.as_millis());
    let timeout_ms = timeout.map(|timeout| u64::try_from(timeout).unwrap_or(u64::MAX));
    let client = tools.iter().map(client_tool).collect();
    let state = app.services.sessions.view(session).await?;
    let is_clients = |name: &str| tools.iter().any(|tool| tool.name == name);
    let daemons = state.rules().tools.iter().map(|tool| tool.name.clone());
    let daemon = daemons.filter(|name| !is_clients(name)).collect();
    Ok(Toolset { daemon: Some(daemon), client, timeout_ms, ..Toolset::default() })
}

/// Imports the history of a conversation into a session, and stores its files.
async fn import_history(
    app: &AppState,
    session: &SessionId,
    conversation: &Conversation,
) -> Result<(), Reply> {
    let mut messages: Vec<ImportedMessage> = conversation
        .instructions
        .iter()
        .map(|text| ImportedMessage::text(Role::System, text.clone()))
        .collect();
    for message in &conversation.earlier {
        let mut files = Vec::new();
        if let Message::User(parts) = message {
            for part in parts {
                if let Part::Media(media) = part {
                    files.push(attach(app, session, media.clone()).await?);
                }
            }
        }
        messages.push(recalled(message.clone(), files));
    }
    // The last result is the input to answer.
    if let NewInput::Results(results) = &conversation.asked {
        let before = results.iter().take(results.len().saturating_sub(1)).cloned();
        let result = |CallResult { call, text }| Message::Result { call, text };
        messages.extend(before.map(|it| recalled(result(it), Vec::new())));
    }
    if !messages.is_empty() {
        let import = Command::ImportMessages { messages, instead: false };
        app.services.sessions.submit(session, import).await?;
    }
    Ok(())
}

/// Attaches a file to a session; returns the part of a message that refers to it.
async fn attach(app: &AppState, session: &SessionId, media: Media) -> Result<message::Part, Reply> {
    let (kind, upload) = store_file(app, media).await?;
    let mime = Some(upload.mime.clone());
    let receipt = app.services.sessions.submit(session, Command::Attach(upload)).await?;
    let name = receipt.records.iter().find_map(|record| match &record.event {
        Event::AttachmentAdded(file) => Some(file.name.clone()),
        _ => None,
    });
    let name = name.ok_or_else(|| Reply::server(500, "a file was not attached"))?;
    Ok(message::Part::Media { kind, name, mime })
}

async fn store_file(app: &AppState, media: Media) -> Result<(MediaKind, NewAttachment), Reply> {
    let Media { kind, name, mime, content, detail: _ } = media;
    let size = content.len() as u64;
    let blob = app.services.blobs.put(content).await?;
    Ok((kind, NewAttachment { name, mime, blob, size }))
}

/// The message to answer.
async fn new_message(
    app: &AppState,
    asked: NewInput,
    mut options: TurnOptions,
) -> Result<NewMessage, Reply> {
    let parts = match asked {
        NewInput::User(parts) => parts,
        NewInput::Results(results) => {
            let Some(CallResult { call, text }) = results.into_iter().next_back() else {
                return Err(Reply::invalid("there is nothing to answer"));
            };
            let more = options.more.take().map(|more| *more).unwrap_or_default();
            let result_of = Some(call_id(&call));
            options.more = RareOptions { result_of, ..more }.unless_empty();
            let parts = vec![message::Part::Text(text)];
            return Ok(NewMessage::new(Role::Tool, parts, TurnStart::Now, options));
        }
    };
    let (mut texts, mut files) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(message::Part::Text(text)),
            Part::Media(media) => files.push(store_file(app, media).await?),
        }
    }
    Ok(NewMessage { files, ..NewMessage::new(Role::User, texts, TurnStart::Now, options) })
}

/// Returns results to the turn that waits for them; `None` if no turn does.
async fn resume(
    app: &AppState,
    results: &[CallResult],
    data: &Map<String, Value>,
) -> Result<Option<AgentRun>, Reply> {
    let named = results.iter().map(|it| Some((ClientCallId::parse(&it.call)?, it.text.as_str())));
    let Some(named) = named.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let Some((ClientCallId { session, .. }, _)) = named.first() else { return Ok(None) };
    if named.iter().any(|(call, _)| call.session != *session) {
        return Ok(None);
    }
    let state = match app.services.sessions.view(session).await {
        Ok(state) => state,
        Err(Error::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(open) = &state.open else { return Ok(None) };
    let waiting: Vec<_> = open
        .calls()
        .iter()
        .filter(|call| call.with_client())
        .map(|call| call.id().clone())
        .collect();
    let (turn, begins) = (open.id.clone(), state.turn(&open.id).map(|turn| turn.begins));
    drop(state);
    let text = |call: &CallId| named.iter().find(|(it, _)| it.call == *call).map(|(_, text)| *text);
    if waiting.iter().all(|call| text(call).is_none()) {
        return Ok(None);
    }
    if let Some(missing) = waiting.iter().find(|call| text(call).is_none()) {
        let call = ClientCallId { session: session.clone(), call: missing.clone() };
        return Err(Reply::invalid(format!("No tool output found for function call {call}."))
            .code("invalid_value")
            .param("messages"));
    }
    let mut answered = None;
    for (n, call) in waiting.iter().enumerate() {
        let mut outcome = Outcome::success(text(call).unwrap_or_default());
        // The answer starts with the last result, because the turn continues only then.
        if n + 1 == waiting.len() {
            outcome.front_end_data = json!({ FRONT_END: data });
        }
        let by = ClientRef::named(FRONT_END);
        let command = Command::ReturnResult { call: call.clone(), by, outcome };
        let receipt = match app.services.sessions.submit(session, command).await {
            Ok(receipt) => receipt,
            Err(Error::Refused(Refusal::CallOver(_))) if n == 0 => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        answered = receipt.records.iter().find_map(|record| match &record.event {
            Event::CallCompleted { call: ended, .. } => (ended == call).then_some(record.seq),
            _ => None,
        });
    }
    let (Some(turn_begins), Some(begins)) = (begins, answered) else {
        return Err(Reply::server(500, "the results were not added"));
    };
    Ok(Some(AgentRun { session: session.clone(), turn, turn_begins, begins }))
}
