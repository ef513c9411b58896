//! Carries out what clients want.

use std::collections::BTreeMap;
use std::path::Path;

use quintet_kernel::command::{Approve, Command, Run, Say, Upload};
use quintet_kernel::event::{Answer, Answerer, Event, Origin, Remember, Seq, TurnOptions};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{Count, Effort, ModelRef, Sampling};
use quintet_kernel::port::{self, Receipt};
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{CallId, Cursor, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::history::{Events, History};
use super::place::event_id;
use super::serve::Desk;
use super::wire::{BUSY, CONTEXT_OVERFLOW, NOTHING_PENDING, SESSION_NOT_FOUND};
use super::wish::{Begin, File, Message, Read, Response, Wish};
use super::{question, shape};
use crate::jsonrpc::{Error, INTERNAL_ERROR, INVALID_PARAMS};

/// How many of the newest sessions are looked at to count those that work.
pub(super) const LOOKED_AT: usize = 100;
/// A message of no more bytes fits every model.
const SURELY_FITS: usize = 4096;

/// What came of a wish.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) result: Value,
    pub(super) then: Then,
}

/// What the connection does once the client has its answer.
#[derive(Debug)]
pub(super) enum Then {
    /// Nothing.
    Nothing,
    /// It tells of the session from an event on, unless it does already.
    Watch(SessionId, Seq),
    /// The same, and a client of the original server is told of no other session.
    Bind(SessionId, Seq),
    /// It goes on telling where the answer ends.
    GoOn(Box<Events>),
    /// It tells of the session no more.
    Leave(SessionId),
}

impl From<Value> for Done {
    fn from(result: Value) -> Self {
        Self { result, then: Then::Nothing }
    }
}

impl Desk {
    /// Carries a wish out.
    pub(super) async fn carry_out(&self, wish: Wish) -> Result<Done, Error> {
        match wish {
            Wish::Create(begin) => self.create(begin).await,
            Wish::List { workspace, limit } => self.list(workspace.as_deref(), limit).await,
            Wish::Get(session) => Ok(self.get(&session).await?.into()),
            Wish::Resume(session) => self.resume(session, true).await,
            Wish::Watch(session) => self.resume(session, false).await,
            Wish::Head(session) => self.newest(session).await,
            Wish::Fork { session, at, name, model } => self.fork(session, at, (name, model)).await,
            Wish::Delete(session) => self.delete(session).await,
            Wish::Branches(session) => self.branches(&session).await,
            Wish::Message(message) => self.message(message).await,
            Wish::Abort(session) => self.abort(&session).await,
            Wish::Respond { session, call, response } => {
                self.respond(session, call.as_deref(), response).await
            }
            Wish::Doing(session) => self.doing(&session).await,
            Wish::Models => Ok(self.models().await.into()),
            Wish::Switch { session, model } => self.switch(&session, &model).await,
            Wish::Context(session) => self.context(&session).await,
            Wish::Snapshot { session, whole } => self.snapshot(&session, whole).await,
            Wish::Room { session, expected } => self.room(&session, expected).await,
            Wish::Compact { session, summary } => self.compact(&session, summary).await,
            Wish::Preview(session) => self.preview(&session).await,
            Wish::Clear(session) => self.clear(&session).await,
            Wish::Events(read) => self.events(&read).await,
            Wish::Backwards(read) => self.backwards(&read).await,
            Wish::Sync(read) => self.sync(&read).await,
            Wish::Unwatch(session) => {
                Ok(Done { result: json!({ "success": true }), then: Then::Leave(session) })
            }
            Wish::Ping => Ok(json!({ "pong": true, "timestamp": self.now().to_millis() }).into()),
            Wish::Info => self.info().await,
            Wish::Ancestors(read) => self.ancestors(&read).await,
            Wish::Tree { session, messages } => self.tree(session, messages).await,
            Wish::Folder { path, hidden } => self.folder(path.as_deref(), hidden).await,
            Wish::Home => Ok(self.home().await.into()),
            Wish::MakeFolder { path, parents } => self.make_folder(&path, parents).await,
            Wish::Fact(fact) => Ok(fact.into()),
        }
    }

    async fn create(&self, begin: Begin) -> Result<Done, Error> {
        let Begin { workspace, model, system_prompt, title } = begin;
        let model = self.model(model.as_deref()).await?;
        let labels = BTreeMap::from_iter(title.map(|title| ("title".to_owned(), title)));
        let origin = Origin { workspace: workspace.into(), system_prompt, model, labels };
        let receipt = self.ports.sessions.create(origin).await.map_err(refused)?;
        let offer = Command::Offer(question::toolset());
        self.ports.sessions.submit(&receipt.session, offer).await.map_err(refused)?;
        let card = self.ports.branches.card(&receipt.session).await.map_err(refused)?;
        let result = shape::session(&card, &self.settings.default_model);
        let from = receipt.records.first().map_or(0, |first| first.seq - 1);
        Ok(Done { result, then: Then::Bind(receipt.session, from) })
    }

    async fn list(&self, workspace: Option<&str>, limit: usize) -> Result<Done, Error> {
        let workspace = workspace.map(Path::new);
        let cards = self.ports.branches.recent(workspace, limit).await.map_err(refused)?;
        let show = |card| shape::session(card, &self.settings.default_model);
        Ok(json!({ "sessions": cards.iter().map(show).collect::<Vec<_>>() }).into())
    }

    async fn get(&self, session: &SessionId) -> Result<Value, Error> {
        let state = self.view(session).await?;
        let shown = shape::whole_session(&state);
        // The original has its members at the top, the text under `session`.
        let mut result = shown.clone();
        result["session"] = shown;
        Ok(result)
    }

    async fn resume(&self, session: SessionId, binds: bool) -> Result<Done, Error> {
        let card = self.ports.branches.card(&session).await.map_err(refused)?;
        let result = shape::session(&card, &self.settings.default_model);
        let head = self.head(&session).await?;
        let then = match binds {
            true => Then::Bind(session, head),
            false => Then::Watch(session, head),
        };
        Ok(Done { result, then })
    }

    async fn newest(&self, session: SessionId) -> Result<Done, Error> {
        let history = self.history(&session).await?;
        let read = Read { limit: Some(1), original: true, ..Read::all(session.clone()) };
        let (events, _) = history.before(&read).await.map_err(refused)?;
        let newest = events.into_iter().next().unwrap_or_default();
        let (id, session) = (newest["id"].clone(), session.as_str());
        Ok(json!({ "sessionId": session, "headEventId": id, "headEvent": newest }).into())
    }

    async fn fork(
        &self,
        session: SessionId,
        at: Option<Seq>,
        changes: (Option<String>, Option<String>),
    ) -> Result<Done, Error> {
        let (name, model) = changes;
        let model = self.model(model.as_deref()).await?;
        let receipt = self.ports.branches.fork(&session, at).await.map_err(refused)?;
        let root = receipt.records.first().map_or(0, |record| record.seq);
        let child = &receipt.session;
        if let Some(title) = name {
            let label = Command::Label { key: "title".into(), value: Some(title) };
            self.ports.sessions.submit(child, label).await.map_err(refused)?;
        }
        if let Some(model) = model {
            let switch = Command::SwitchModel(model);
            self.ports.sessions.submit(child, switch).await.map_err(refused)?;
        }
        let result = json!({
            "newSessionId": child.as_str(),
            "sessionId": child.as_str(),
            "rootEventId": event_id(child, root),
            "rootSequence": root,
            "forkedFromEventId": event_id(&session, root.saturating_sub(1)),
            "forkedFromSessionId": session.as_str(),
        });
        Ok(Done { result, then: watch(&receipt) })
    }

    async fn delete(&self, session: SessionId) -> Result<Done, Error> {
        self.ports.removals.remove(&session).await.map_err(refused)?;
        let result = json!({ "success": true, "deleted": true });
        Ok(Done { result, then: Then::Leave(session) })
    }

    async fn message(&self, message: Message) -> Result<Done, Error> {
        let Message { session, text, files, model, effort, queue, key } = message;
        let model = self.model(model.as_deref()).await?;
        let effort = effort.as_deref().map(self::effort).transpose()?;
        if text.len() > SURELY_FITS {
            self.fits(&session, model.as_ref(), &text).await?;
        }
        let parts = (!text.is_empty()).then_some(Part::Text(text)).into_iter().collect();
        let sampling = Sampling { effort, ..Sampling::default() };
        let options = TurnOptions { model, sampling, key, ..TurnOptions::default() };
        let run = if queue { Run::Next } else { Run::Now };
        let say = Say { role: Role::User, parts, run, options };
        let command = match files.is_empty() {
            true => Command::Say(Box::new(say)),
            false => {
                let files = self.keep(&session, files, queue).await?;
                Command::SayWith { say: Box::new(say), files }
            }
        };
        let receipt = self.ports.sessions.submit(&session, command).await.map_err(refused)?;
        Ok(Done { result: acknowledged(&receipt), then: watch(&receipt) })
    }

    /// Whether a model can read a message at all, however much of the rest is summarized.
    async fn fits(
        &self,
        session: &SessionId,
        model: Option<&ModelRef>,
        text: &str,
    ) -> Result<(), Error> {
        let state = self.view(session).await?;
        let profile = state.rules().profile(model.unwrap_or(state.current_model()));
        let (tokens, window) =
            (Count::guess(text).tokens, profile.and_then(|profile| profile.context_window));
        match window.filter(|window| tokens > *window) {
            None => Ok(()),
            Some(window) => {
                let why = format!("the message is about {tokens} tokens, the model reads {window}");
                let data = json!({ "sessionId": session.as_str(), "contextLimit": window });
                Err(Error::new(CONTEXT_OVERFLOW, why).with(data))
            }
        }
    }

    /// Stores the files of a message, unless it is plain already that it will not be taken.
    async fn keep(
        &self,
        session: &SessionId,
        files: Vec<File>,
        queue: bool,
    ) -> Result<Vec<(MediaKind, Upload)>, Error> {
        let card = self.ports.branches.card(session).await.map_err(refused)?;
        if card.open && !queue && self.view(session).await?.busy() {
            return Err(refused(port::Error::Refused(Refusal::Busy(session.clone()))));
        }
        let mut uploads = Vec::new();
        for File { name, mime, kind, content } in files {
            let size = content.len() as u64;
            let blob =
                self.ports.blobs.put(content).await.map_err(|error| refused(error.into()))?;
            uploads.push((kind, Upload { name, mime, blob, size }));
        }
        Ok(uploads)
    }

    async fn abort(&self, session: &SessionId) -> Result<Done, Error> {
        let cancel = Command::Cancel { reason: Some("aborted by the client".into()) };
        let receipt = self.ports.sessions.submit(session, cancel).await.map_err(refused)?;
        Ok(json!({ "aborted": !receipt.records.is_empty() }).into())
    }

    async fn respond(
        &self,
        session: SessionId,
        call: Option<&str>,
        response: Response,
    ) -> Result<Done, Error> {
        let state = self.view(&session).await?;
        let (id, command) = answering(&state, call, response)?;
        let receipt = self.ports.sessions.submit(&session, command).await.map_err(refused)?;
        let result = json!({
            "success": true, "acknowledged": true, "toolId": id.as_str(), "toolCallId": id.as_str(),
        });
        // An answer to a subagent is no wish to hear of it.
        let then = if receipt.session == session { watch(&receipt) } else { Then::Nothing };
        Ok(Done { result, then })
    }

    async fn switch(&self, session: &SessionId, model: &str) -> Result<Done, Error> {
        let card = self.ports.branches.card(session).await.map_err(refused)?;
        let before = card.model.map(|model| model.to_string());
        let before = before.unwrap_or_else(|| self.settings.default_model.clone());
        let model = self.model(Some(model)).await?;
        let Some(model) = model else { return Err(unknown_model("")) };
        let switched = model.to_string();
        let command = Command::SwitchModel(model);
        self.ports.sessions.submit(session, command).await.map_err(refused)?;
        Ok(json!({ "success": true, "previousModel": before, "newModel": switched }).into())
    }

    async fn events(&self, read: &Read) -> Result<Done, Error> {
        let history = self.history(&read.session).await?;
        let mut after = read.from.unwrap_or(0);
        if let Some(since) = read.since {
            let head = self.head(&read.session).await?;
            after = after.max(history.before_moment(head, since).await.map_err(refused)?);
        }
        let found = history.after(after, read).await.map_err(refused)?;
        Ok(page(&found).into())
    }

    async fn backwards(&self, read: &Read) -> Result<Done, Error> {
        let history = self.history(&read.session).await?;
        let (events, more) = history.before(read).await.map_err(refused)?;
        let oldest = events.last().map(|event| event["id"].clone());
        let head = match read.from {
            None => events.first().map(|event| event["id"].clone()),
            Some(_) => None,
        };
        let mut shown = json!({ "events": events, "hasMore": more, "oldestEventId": oldest });
        if let Some(head) = head {
            shown["headEventId"] = head;
        }
        Ok(shown.into())
    }

    async fn sync(&self, read: &Read) -> Result<Done, Error> {
        let history = self.history(&read.session).await?;
        let found = history.after(read.from.unwrap_or(0), read).await.map_err(refused)?;
        Ok(Done { result: page(&found), then: Then::GoOn(Box::new(found)) })
    }

    async fn models(&self) -> Value {
        let models = self.ports.models.list().await;
        json!({ "models": models.iter().map(shape::model).collect::<Vec<_>>() })
    }

    async fn info(&self) -> Result<Done, Error> {
        let recent = self.ports.branches.recent(None, LOOKED_AT).await.map_err(refused)?;
        Ok(json!({
            "name": "quintet",
            "version": env!("CARGO_PKG_VERSION"),
            "uptime": self.now().since(self.began).as_secs(),
            "activeSessions": recent.iter().filter(|card| card.open).count(),
            "defaultModel": self.settings.default_model,
        })
        .into())
    }

    /// What the agent does, and since when.
    async fn doing(&self, session: &SessionId) -> Result<Done, Error> {
        let state = self.view(session).await?;
        let calls = state.open.iter().flat_map(|open| open.calls()).count();
        let events = match calls {
            0 => Vec::new(),
            _ => {
                let types = ["tool.call", "tool.result"].map(String::from).into();
                let read = Read { types, limit: Some(2 * calls), ..Read::all(session.clone()) };
                self.history(session).await?.before(&read).await.map_err(refused)?.0
            }
        };
        Ok(shape::doing(&state, &events).into())
    }

    /// A model by its whole name, or by its own if that is enough.
    async fn model(&self, name: Option<&str>) -> Result<Option<ModelRef>, Error> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
        let whole = ModelRef::parse(name);
        // Providers may have to be asked for their lists, which a whole name does not need.
        if whole.as_ref().is_some_and(|whole| self.settings.providers.contains(&whole.provider)) {
            return Ok(whole);
        }
        let listed = self.ports.models.list().await;
        let named =
            listed.iter().find(|one| one.model.to_string() == name || one.model.model == name);
        match named.map(|one| one.model.clone()).or(whole) {
            Some(model) => Ok(Some(model)),
            None => Err(unknown_model(name)),
        }
    }

    pub(super) async fn view(&self, session: &SessionId) -> Result<std::sync::Arc<State>, Error> {
        self.ports.sessions.view(session).await.map_err(refused)
    }

    pub(super) async fn head(&self, session: &SessionId) -> Result<Seq, Error> {
        let follow = self.ports.sessions.follow(session, Cursor::START).await.map_err(refused)?;
        Ok(follow.head())
    }

    /// The session's events.
    pub(super) async fn history(&self, session: &SessionId) -> Result<History<'_>, Error> {
        let card = self.ports.branches.card(session).await.map_err(refused)?;
        let workspace = card.workspace.to_string_lossy().into_owned();
        let default = self.settings.default_model.clone();
        let current = card.model.as_ref().map_or_else(|| default.clone(), ToString::to_string);
        let (sessions, models) = (&*self.ports.sessions, (default, current));
        let (session, turns) = (session.clone(), card.last_turn.is_some());
        Ok(History { sessions, session, workspace, models, turns })
    }
}

/// Tells of a session from what a command led to on.
fn watch(receipt: &Receipt) -> Then {
    match receipt.records.first() {
        Some(first) => Then::Watch(receipt.session.clone(), first.seq - 1),
        None => Then::Nothing,
    }
}

fn acknowledged(receipt: &Receipt) -> Value {
    let added = receipt.records.iter().find_map(|record| match &record.event {
        Event::MessageAdded { message, turn, nth, .. } => Some((record.seq, message, turn, *nth)),
        _ => None,
    });
    let Some((seq, message, turn, nth)) = added else { return json!({ "acknowledged": true }) };
    let starts = |event: &Event| matches!(event, Event::TurnStarted { turn: id, .. } if id == turn);
    json!({
        "acknowledged": true,
        "sessionId": receipt.session.as_str(),
        "messageId": message.as_str(),
        "turnId": turn.as_str(),
        "runId": turn.as_str(),
        "turn": nth,
        "sequence": seq,
        "queued": !receipt.records.iter().any(|record| starts(&record.event)),
    })
}

fn page(found: &Events) -> Value {
    let last = found.events.last();
    json!({
        "events": found.events,
        "hasMore": found.more,
        "lastSequence": found.upto,
        "nextCursor": last.map(|event| event["id"].clone()),
    })
}

/// What an answer is to whom: to the call that is named, else to the turn that is held or the first
/// call that waits, of this session or of one that works for it.
fn answering(
    state: &State,
    named: Option<&str>,
    response: Response,
) -> Result<(CallId, Command), Error> {
    let is_meant = |id: &CallId| named.is_none_or(|named| id.as_str() == named);
    let held = state.open.as_ref().and_then(|open| open.question());
    if let Some(id) = held.filter(|id| is_meant(id)) {
        return Ok((id.clone(), Command::Approve(word(&id, response)?)));
    }
    let waits = |call: &&Call| {
        let waits = matches!(
            call.phase,
            CallPhase::Asked { .. } | CallPhase::Started(_, Placement::Client)
        );
        waits && is_meant(call.id())
    };
    if let Some(call) = state.open.iter().flat_map(|open| open.calls()).find(waits) {
        let id = call.id().clone();
        let command = match &call.phase {
            CallPhase::Asked { .. } => Command::Approve(word(&id, response)?),
            _ => Command::Return { call: id.clone(), outcome: outcome(response) },
        };
        return Ok((id, command));
    }
    match state.asked.iter().find(|asked| is_meant(&asked.call)) {
        Some(asked) => Ok((asked.call.clone(), Command::Approve(word(&asked.call, response)?))),
        None => Err(Error::new(NOTHING_PENDING, "nothing waits for this answer")),
    }
}

fn word(call: &CallId, response: Response) -> Result<Approve, Error> {
    let (allow, reason) = match response {
        Response::Word { allow, reason } => (allow, reason),
        Response::Said { text, .. } => match text.trim().to_lowercase().as_str() {
            "yes" | "y" | "allow" | "approve" | "ok" | "true" => (true, None),
            "no" | "n" | "deny" | "reject" | "false" => (false, None),
            _ => return Err(Error::field("response", "allow or deny")),
        },
    };
    let answer = if allow { Answer::Allow } else { Answer::Deny };
    let (by, remember) = (Answerer::Client, Remember::Once);
    Ok(Approve { call: call.clone(), turn: None, answer, reason, by, remember })
}

fn outcome(response: Response) -> Outcome {
    match response {
        Response::Said { text, failed: false } => Outcome::success(text),
        Response::Said { text, failed: true } => Outcome::failure(text),
        Response::Word { allow, reason } => {
            let word = if allow { "yes" } else { "no" };
            Outcome::success(reason.map_or(word.into(), |reason| format!("{word}: {reason}")))
        }
    }
}

fn effort(word: &str) -> Result<Effort, Error> {
    let quoted = Value::String(word.into());
    serde_json::from_value(quoted).map_err(|_| Error::field("reasoningLevel", "a known level"))
}

fn unknown_model(name: &str) -> Error {
    Error::new(INVALID_PARAMS, format!("Unknown model: {name}"))
}

/// The core's "no", as this protocol says it.
pub(super) fn refused(error: port::Error) -> Error {
    let message = error.to_string();
    match error {
        port::Error::NotFound(id) | port::Error::Refused(Refusal::NotBegun(id)) => {
            Error::new(SESSION_NOT_FOUND, format!("Session does not exist: {id}"))
                .with(json!({ "sessionId": id.as_str() }))
        }
        port::Error::Refused(Refusal::Busy(id)) => {
            Error::new(BUSY, message).with(json!({ "sessionId": id.as_str(), "retryable": true }))
        }
        port::Error::Refused(
            Refusal::NothingPending(_)
            | Refusal::NotPending(_)
            | Refusal::CallOver(_)
            | Refusal::UnknownCall(_)
            | Refusal::NotDelegated(_),
        ) => Error::new(NOTHING_PENDING, message),
        port::Error::Refused(_) | port::Error::Ahead(..) => Error::new(INVALID_PARAMS, message),
        port::Error::ReadOnly | port::Error::Closing | port::Error::Storage(_) => {
            Error::new(INTERNAL_ERROR, message)
        }
    }
}
